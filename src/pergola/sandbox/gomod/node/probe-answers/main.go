// Command probe-answers takes the place of a program that a sandbox does not have: it answers the
// probes of its pod, over TCP, HTTP and HTTPS, and does nothing else.
//
// The ports are those in PERGOLA_PORTS, separated by commas, and those in flags like --port=8080 and
// --health-probe-bind-address=:8081. With PERGOLA_EXITS=true it ends at once, as an init container.
package main

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
	"time"
)

const (
	portsVariable = "PERGOLA_PORTS"
	exitsVariable = "PERGOLA_EXITS"
	helloWithin   = 10 * time.Second
	tlsHandshake  = 0x16 // the first byte of a TLS connection
)

// A flag that names a port or an address to listen on; its host is group 1, its port group 2.
var address = regexp.MustCompile(`^--?[\w.-]*(?:port|addr|address|listen)[= ]([^:/=]*:)?(\d{1,5})$`)

func main() {
	log.SetFlags(0)
	log.Printf("a stand-in that answers probes in place of %s", strings.Join(os.Args, " "))
	if os.Getenv(exitsVariable) == "true" {
		return
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
	config, err := selfSigned()
	if err != nil {
		log.Fatal(err)
	}
	for _, address := range addresses(os.Args[1:], os.Getenv(portsVariable)) {
		listener, err := net.Listen("tcp", address)
		if err != nil {
			log.Print(err) // most likely another container of the pod has the port
			continue
		}
		log.Printf("listening on %s", listener.Addr())
		go serve(listener, config)
	}
	<-stop
}

func addresses(args []string, ports string) []string {
	var found []string
	seen := map[string]bool{}
	add := func(host, port string) {
		if !seen[port] {
			seen[port] = true
			found = append(found, host+":"+port)
		}
	}
	for _, port := range strings.FieldsFunc(ports, func(r rune) bool { return r == ',' }) {
		add("", port)
	}
	for number, arg := range args {
		if number+1 < len(args) && !strings.Contains(arg, "=") {
			arg += " " + args[number+1]
		}
		if match := address.FindStringSubmatch(arg); match != nil {
			add(strings.TrimSuffix(match[1], ":"), match[2])
		}
	}
	return found
}

// serve answers every request with 200, over TLS if the client begins with a TLS handshake.
func serve(listener net.Listener, config *tls.Config) {
	plain := &queue{listener, make(chan net.Conn)}
	server := &http.Server{
		ReadHeaderTimeout: helloWithin,
		Handler: http.HandlerFunc(func(answer http.ResponseWriter, _ *http.Request) {
			fmt.Fprintln(answer, "a stand-in answers")
		}),
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				log.Fatal(err)
			}
			go plain.offer(conn, config)
		}
	}()
	log.Fatal(server.Serve(plain))
}

// queue is a listener whose connections have shown whether they use TLS.
type queue struct {
	net.Listener
	conns chan net.Conn
}

func (q *queue) Accept() (net.Conn, error) {
	return <-q.conns, nil
}

func (q *queue) offer(conn net.Conn, config *tls.Config) {
	reader := bufio.NewReader(conn)
	_ = conn.SetReadDeadline(time.Now().Add(helloWithin))
	first, err := reader.Peek(1)
	if err != nil {
		conn.Close() // a TCP probe, which connects and leaves
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	conn = &peeked{conn, reader}
	if first[0] == tlsHandshake {
		conn = tls.Server(conn, config)
	}
	q.conns <- conn
}

// peeked is a connection of which a reader has buffered the beginning.
type peeked struct {
	net.Conn
	reader *bufio.Reader
}

func (p *peeked) Read(buffer []byte) (int, error) {
	return p.reader.Read(buffer)
}

func selfSigned() (*tls.Config, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		DNSNames:     []string{"localhost"},
		NotAfter:     time.Now().AddDate(1, 0, 0),
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	chain := tls.Certificate{Certificate: [][]byte{certificate}, PrivateKey: key}
	return &tls.Config{Certificates: []tls.Certificate{chain}}, nil
}
