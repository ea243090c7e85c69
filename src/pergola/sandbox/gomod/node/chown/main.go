// Command chown gives files to another user and group, given by number: `chown [-R] UID:GID PATH...`.
package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "chown:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	recursive := len(args) > 0 && args[0] == "-R"
	if recursive {
		args = args[1:]
	}
	if len(args) < 2 {
		return fmt.Errorf("usage: chown [-R] UID:GID PATH...")
	}
	owner, group, _ := strings.Cut(args[0], ":")
	uid, err := strconv.Atoi(owner)
	if err != nil {
		return fmt.Errorf("the user must be a number, not %q", owner)
	}
	gid, err := strconv.Atoi(group)
	if err != nil {
		return fmt.Errorf("the group must be a number, not %q", group)
	}
	for _, path := range args[1:] {
		if err := change(path, uid, gid, recursive); err != nil {
			return err
		}
	}
	return nil
}

func change(path string, uid, gid int, recursive bool) error {
	if !recursive {
		return os.Lchown(path, uid, gid)
	}
	return filepath.WalkDir(path, func(found string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(found, uid, gid)
	})
}
