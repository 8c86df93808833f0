package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"github.com/stilehost/stile/durable"
	"github.com/stilehost/stile/extension/web"
	"github.com/stilehost/stile/mcp"
)

type serveCommand struct {
	Run   serveRun   `cmd:"" default:"withargs" help:"Serve agents over HTTP, with web pages where a person decides."`
	Token serveToken `cmd:"" help:"Manage the tokens of agents."`
}

type serveRun struct {
	Listen      string   `default:"127.0.0.1:7340" placeholder:"ADDRESS:PORT" help:"Where to listen. Listening beyond this machine requires TLS. Default: ${default}."`
	AddressFile string   `placeholder:"FILE" help:"File to write the address to, once the server listens; useful with port 0."`
	Host        []string `sep:"none" placeholder:"NAME" help:"Name by which clients reach the server, such as a proxy's. Can be repeated. Default: the certificate's names."`
	TLSCert     string   `name:"tls-cert" placeholder:"FILE" help:"Certificate, in PEM."`
	TLSKey      string   `name:"tls-key" placeholder:"FILE" help:"Key of the certificate, in PEM."`
	// OperatorTokenFile is for servers without a terminal.
	OperatorTokenFile string `placeholder:"FILE" help:"File to write the operator token to, readable by its owner only. It is removed at the end."`
	tokenFlag
	modelFlags
	Drain time.Duration `default:"30s" placeholder:"DURATION" help:"How long running calls may continue after the process is asked to end. Default: ${default}."`
}

// Help implements kong.HelpProvider.
func (*serveCommand) Help() string { return (*serveRun)(nil).Help() }

// Help implements kong.HelpProvider.
func (*serveRun) Help() string {
	return `Agents speak the Model Context Protocol (streamable HTTP) at /mcp, each with a token from stile serve token. On the web pages at /, a person approves, denies and revokes, and sees, cancels, retries and removes durable runs. The pages ask for an operator token. The server shows the token at start, on a terminal only, or writes it to --operator-token-file. No agent sees it.

The server picks up changes to policy.json. They apply to every later write and call. Open handles that the new ceiling does not allow are closed within a tenth of a second. An invalid or missing file is logged; the previous policy stays in force.

On SIGTERM or ^C, the server takes no more calls and waits for running ones. On a second signal, it ends at once.

stile serve run --help lists the flags.

Examples:

    stile serve
    stile serve --listen 127.0.0.1:0 --address-file address
    stile serve --operator-token-file ~/.stile-operator 2>>log &
    stile serve --listen 0.0.0.0:7340 --tls-cert cert.pem --tls-key key.pem`
}

// Run implements the command.
func (c *serveRun) Run(ctx context.Context, s *streams) error {
	config, err := c.tls()
	if err != nil {
		return err
	}
	if err := checkListen(c.Listen, config != nil); err != nil {
		return err
	}
	file, where, err := c.file()
	if err != nil {
		return err
	}
	if _, err := readTokens(file); err != nil {
		return err
	}
	person, err := where.author()
	if err != nil {
		return err
	}
	return serving(ctx, s, c.Drain, c.modelFlags, func(e *extensions, runs *durable.Runs, server *mcp.Server) error {
		return c.serve(ctx, s, e, runs, server, config, file, person)
	})
}

// serve serves agents and pages until ctx ends and running calls have ended.
func (c *serveRun) serve(ctx context.Context, s *streams, e *extensions, runs *durable.Runs, server *mcp.Server, config *tls.Config, file, person string) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return &usageError{err}
	}
	defer func() { _ = listener.Close() }() // the server may have closed it
	at := listener.Addr().(*net.TCPAddr).AddrPort()
	e.own.Add(at)
	if c.AddressFile != "" {
		if err := writeFile(c.AddressFile, []byte(at.String()+"\n")); err != nil {
			return err
		}
	}
	listener = newConnections(listener, maxConnections)
	scheme, certificate := "http", (*x509.Certificate)(nil)
	if config != nil {
		scheme, certificate, listener = "https", config.Certificates[0].Leaf, tls.NewListener(listener, config)
	}
	hosts := c.hosts(at, certificate)
	pages := web.New(web.Options{
		Manager: e.Manager, Hosts: hosts, Person: person, TLS: config != nil, Logger: e.logger, Runs: runPages{runs},
		SignedIn: func(r *http.Request) { used(r, person) },
	})
	holder := holders(file, e.logger)
	agents, err := server.Handler(mcp.HTTPOptions{Hosts: hosts, Holder: holder})
	if err != nil {
		return err
	}
	if c.OperatorTokenFile != "" {
		remove, err := lendFile(c.OperatorTokenFile, []byte(pages.Token()+"\n"))
		if err != nil {
			return err
		}
		defer remove()
	}
	gate := &gate{}
	mux := http.NewServeMux()
	mux.Handle("/mcp", gate.handler(usedByAgents(agents, holder)))
	mux.Handle("/", pages)
	h := &http.Server{
		Handler: mux, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: maxHeader,
		ConnContext: withConnection,
		ErrorLog:    slog.NewLogLogger(e.logger.Handler(), slog.LevelDebug), // strangers' requests are not logged
	}
	served := make(chan error, 1)
	go func() { served <- h.Serve(listener) }()
	s.say("stile: agents at %s://%s/mcp, pages at %s://%s/", scheme, at, scheme, at)
	switch {
	case s.interactive():
		s.say("stile: the operator token of the pages is %s", pages.Token())
	case c.OperatorTokenFile != "":
		s.say("stile: the operator token of the pages is in %s", c.OperatorTokenFile)
	default:
		s.say("stile: nobody can open the pages, because the operator token is shown on a terminal only; write it to a file with --operator-token-file FILE")
	}
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	if n := gate.running(); n > 0 {
		s.say("stile: waiting up to %v for %s under way", c.Drain, counted(n, "request"))
	}
	gate.drain(c.Drain, server.EndCalls)
	err = server.Close() // sessions and running calls
	shutdown, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if h.Shutdown(shutdown) != nil {
		err = errors.Join(err, h.Close())
	}
	return err
}

// maxConnections is how many connections the server has at once, strangers' included. Further ones take the places of others, as
// [connections] says.
const maxConnections = 1024

// maxHeader is how many bytes the head of a request may have, beside 4 KiB that net/http adds. A head takes up to 20 times its bytes, and a
// stranger can have one for each connection.
const maxHeader = 4 << 10

// tls reads the certificate. It returns nil if there is none.
func (c *serveRun) tls() (*tls.Config, error) {
	if (c.TLSCert == "") != (c.TLSKey == "") {
		return nil, usagef("--tls-cert needs --tls-key, and the reverse; give both")
	}
	if c.TLSCert == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(c.TLSCert, c.TLSKey)
	if err != nil {
		return nil, &usageError{err}
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}, nil
}

// checkListen refuses to send tokens over a network without TLS.
func checkListen(address string, secure bool) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return usagef("--listen %s: %w", address, err)
	}
	if secure || isLoopback(host) {
		return nil
	}
	return usagef("--listen %s is reachable from other machines; give --tls-cert and --tls-key, or listen on 127.0.0.1", address)
}

// isLoopback reports whether a host is this machine, whose network nobody else reads.
func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// hosts returns the values of Host that the server answers: the address, and the given names, or else the certificate's names.
func (c *serveRun) hosts(at netip.AddrPort, certificate *x509.Certificate) []string {
	names := c.Host
	if len(names) == 0 && certificate != nil {
		names = certificate.DNSNames
		for _, ip := range certificate.IPAddresses {
			names = append(names, ip.String())
		}
	}
	hosts := web.Hosts(net.TCPAddrFromAddrPort(at))
	for _, name := range names {
		hosts = append(hosts, name, net.JoinHostPort(name, strconv.Itoa(int(at.Port()))))
	}
	return hosts
}
