// Command dbos keeps runs with DBOS Transact on the PostgreSQL of DATABASE_URL, for the benchmark of durable runs.
package main

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stilehost/stile/bench/peers/protocol"
)

type peer struct {
	ctx dbos.DBOSContext
	db  *pgxpool.Pool
	// begun has the handles of runs that this process started. They know the end at once; those of others ask the database once a second.
	begun sync.Map
}

func work(ctx dbos.DBOSContext, w protocol.Work) (int, error) {
	made := 0
	step := func(n int) error {
		for range n {
			if _, err := dbos.RunAsStep(ctx, func(context.Context) (int64, error) { return protocol.Step(), nil }, dbos.WithStepName("step")); err != nil {
				return err
			}
			made++
		}
		return nil
	}
	if err := step(w.Before); err != nil {
		return 0, err
	}
	if w.Wait > 0 {
		if _, err := dbos.Sleep(ctx, time.Duration(w.Wait)*time.Millisecond); err != nil {
			return 0, err
		}
	}
	err := step(w.After)
	return made, err
}

// Start implements [protocol.Peer].
func (p *peer) Start(_ context.Context, id string, w protocol.Work) error {
	h, err := dbos.RunWorkflow(p.ctx, work, w, dbos.WithWorkflowID(id))
	p.begun.Store(id, h)
	return err
}

// End implements [protocol.Peer].
func (p *peer) End(_ context.Context, id string, _ protocol.Work) (int, error) {
	if h, ok := p.begun.Load(id); ok {
		return h.(dbos.WorkflowHandle[int]).GetResult()
	}
	h, err := dbos.RetrieveWorkflow[int](p.ctx, id)
	if err != nil {
		return 0, err
	}
	return h.GetResult()
}

// Size implements [protocol.Peer].
func (p *peer) Size(ctx context.Context) (n int64, err error) {
	err = p.db.QueryRow(ctx, `SELECT pg_database_size(current_database())`).Scan(&n)
	return n, err
}

func main() {
	protocol.Serve(func(ctx context.Context, _ string) (protocol.Peer, error) {
		url := os.Getenv("DATABASE_URL")
		c, err := dbos.NewDBOSContext(ctx, dbos.Config{AppName: "bench", DatabaseURL: url, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			return nil, err
		}
		dbos.RegisterWorkflow(c, work)
		if err := dbos.Launch(c); err != nil {
			return nil, err
		}
		db, err := pgxpool.New(ctx, url)
		return &peer{ctx: c, db: db}, err
	})
}
