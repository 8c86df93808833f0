package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/stilehost/stile/durable"
	"github.com/stilehost/stile/extension/lifecycle"
	"github.com/stilehost/stile/mcp"
)

type mcpCommand struct {
	Agent string `default:"mcp" placeholder:"NAME" help:"Name of the agent. Its own extensions are in the scope agent:NAME. Default: ${default}."`
	userFlag
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
func (c *mcpCommand) Run(ctx context.Context, s *streams) error {
	where, err := readSettings()
	if err != nil {
		return err
	}
	v, err := c.viewer(where, c.Agent)
	if err != nil {
		return err
	}
	return serving(ctx, s, c.Drain, c.modelFlags, func(_ *extensions, _ *durable.Runs, server *mcp.Server) error {
		gate := &gate{}
		whole, cancel := context.WithCancel(context.WithoutCancel(ctx))
		defer cancel()
		defer context.AfterFunc(ctx, func() { // the process was asked to end
			gate.drain(c.Drain, server.EndCalls)
			cancel()
		})()
		err := server.Serve(whole, v, gatedTransport{mcp.Lines(os.Stdin, os.Stdout, c.Drain), gate})
		if whole.Err() != nil { // an orderly end
			return nil
		}
		return err
	})
}

// userFlag names the user of an agent.
type userFlag struct {
	User string `placeholder:"NAME" help:"Name of its user. Default: STILE_USER, or the user of the operating system."`
}

// viewer returns an agent of the user.
func (f userFlag) viewer(where settings, agent string) (v lifecycle.Viewer, err error) {
	v = lifecycle.Viewer{User: f.User, Agent: agent}
	if v.User == "" {
		if v.User, err = where.owner(); err != nil {
			return v, err
		}
	}
	if err := v.Check(); err != nil {
		return v, &usageError{err}
	}
	return v, nil
}

// serving opens the store and a server for the calls of agents, as long as use takes. When ctx ends, running calls continue until they
// are drained.
func serving(ctx context.Context, s *streams, drain time.Duration, f modelFlags, use func(*extensions, *durable.Runs, *mcp.Server) error) error {
	return withOptions(context.WithoutCancel(ctx), s, sessionOptions{many: true}, func(e *extensions) (err error) {
		runs, err := e.openRuns(ctx, s, e.Manager)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, drainRuns(ctx, runs, drain)) }()
		runs.Work()
		server, err := e.newServer(ctx, f, runs)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, server.Close()) }()
		return use(e, runs, server)
	})
}

// newServer creates a server for the store. Close it before the store.
func (e *extensions) newServer(ctx context.Context, f modelFlags, runs *durable.Runs) (*mcp.Server, error) {
	generate, err := e.generateForAgents(ctx, f)
	if err != nil {
		return nil, err
	}
	return mcp.New(mcp.Options{ //nolint:contextcheck // it lives until it is closed
		Manager: e.Manager, Ladder: e.ladders, Generate: generate, Version: readVersions().Stile, Logger: e.logger,
		Runs: &mcp.Runs{Store: runs, Spec: e.specOf, Target: callOf},
	})
}
