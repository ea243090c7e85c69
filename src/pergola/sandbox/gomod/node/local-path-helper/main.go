// local-path-helper makes and removes the folders of local-path-provisioner's volumes. It takes the
// place of the shell scripts of the original's helper pod, so that the pod's image needs no shell.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	path := flag.String("p", "", "the volume's folder")
	action := flag.String("a", "", "create or delete")
	flag.String("s", "", "the volume's size in bytes, which nothing enforces")
	flag.String("m", "", "the volume's mode: Filesystem or Block")
	flag.Parse()
	if err := run(*action, *path); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(action, path string) error {
	if !filepath.IsAbs(path) || filepath.Clean(path) == "/" {
		return fmt.Errorf("-p must be the absolute path of a folder, not %q", path)
	}
	switch action {
	case "create":
		if err := os.MkdirAll(path, 0o777); err != nil {
			return err
		}
		return os.Chmod(path, 0o777) // past the umask: pods of any user write here
	case "delete":
		return os.RemoveAll(path)
	}
	return fmt.Errorf("-a must be create or delete, not %q", action)
}
