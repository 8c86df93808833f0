package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/lifecycle"
	"github.com/stilehost/stile/mcp"
)

type mcpCommand struct {
	Agent string `default:"mcp" placeholder:"NAME" help:"Name of the agent. Its own extensions are in the scope agent:NAME. Default: ${default}."`
	User  string `placeholder:"NAME" help:"Name of its user. Default: STILE_USER, or the user of the operating system."`
	modelFlags
	Drain time.Duration `default:"30s" placeholder:"DURATION" help:"How long running calls may continue after the process is asked to end, or stdin has ended. Default: ${default}."`
}

// Help implements kong.HelpProvider.
func (*mcpCommand) Help() string {
	return `An MCP client starts this command and speaks the Model Context Protocol with it on stdin and stdout. The agent can write extensions and call their tools. It cannot approve anything: a request for authority waits for stile ext approve. Logs go to stderr.

Examples:

    stile mcp
    stile mcp --agent claude`
}

// Run implements the command.
func (c *mcpCommand) Run(ctx context.Context, s *streams) (err error) {
	v, e, err := serving(ctx, s, c.Agent, c.User)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	server, err := e.newServer(ctx, c.modelFlags)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	gate := &gate{}
	whole, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { // the process was asked to end
		gate.drain(c.Drain, server.EndCalls)
		cancel()
	})()
	err = server.Serve(whole, v, gatedTransport{mcp.Lines(os.Stdin, os.Stdout, c.Drain), gate})
	if whole.Err() != nil { // an orderly end
		return nil
	}
	return err
}

// serving opens the store for the calls of an agent. When ctx ends, running calls continue until they are drained.
func serving(ctx context.Context, s *streams, agent, user string) (v lifecycle.Viewer, e *extensions, err error) {
	where, err := readSettings()
	if err != nil {
		return v, nil, err
	}
	v = lifecycle.Viewer{User: user, Agent: agent}
	if user == "" {
		if v.User, err = where.owner(); err != nil {
			return v, nil, err
		}
	}
	if err := checkViewer(v); err != nil {
		return v, nil, err
	}
	e, err = openExtensions(context.WithoutCancel(ctx), s, sessionOptions{many: true})
	return v, e, err
}

// checkViewer checks the given names.
func checkViewer(v lifecycle.Viewer) error {
	if _, err := extension.ParseScope("agent:" + v.Agent); err != nil {
		return usagef("name of the agent: %w", err)
	}
	if _, err := extension.ParseScope("user:" + v.User); err != nil {
		return usagef("name of the user: %w", err)
	}
	return nil
}

// newServer creates a server for the store. Close it before the store.
func (e *extensions) newServer(ctx context.Context, f modelFlags) (*mcp.Server, error) {
	generate, err := e.generateForAgents(ctx, f)
	if err != nil {
		return nil, err
	}
	return mcp.New(mcp.Options{ //nolint:contextcheck // it lives until it is closed
		Manager: e.Manager, Evaluator: e.evaluator, Generate: generate, Version: readVersions().Stile, Logger: e.logger,
	})
}
