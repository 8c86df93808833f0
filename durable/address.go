package durable

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/sha256hex"
	"github.com/stilehost/stile/internal/sqlite"
)

// ErrAddress reports an address that no mailbox has: its run has ended, or there was none. Nothing tells which.
var ErrAddress = errors.New("no mailbox has this address")

// token is the secret part of a mailbox's address: 256 bits that follow from the owner's key, and that nobody can guess without it.
func (s *sealer) token(run, mailbox string) string {
	h := hmac.New(sha256.New, s.addresses)
	h.Write([]byte(run + "\x00" + mailbox))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// Address implements [abi.Mailboxes].
func (a mailboxes) Address(ctx context.Context, mailbox string) (url string, err error) {
	r := a.runs
	if r.o.URL == "" {
		return "", abi.Errorf(abi.CodeUnavailable, "this machine has no address for signals; its owner sets one")
	}
	token := r.sealer.token(a.name, mailbox)
	err = r.db.Update(ctx, func(c *sqlite.Conn) error {
		var held, known bool
		var others int
		const state = `SELECT EXISTS (SELECT 1 FROM run WHERE id = ?1 AND owner = ?2 AND fence = ?3), EXISTS (SELECT 1 FROM address WHERE run = ?1 AND mailbox = ?4),
			(SELECT count(*) FROM address WHERE run = ?1)`
		switch err := c.Row(ctx, state, a.id, r.owner, a.fence, mailbox).Scan(&held, &known, &others); {
		case err != nil:
			return err
		case !held:
			return &LostError{a.name}
		case known:
			return nil
		case others >= MaxMailboxes:
			return abi.Errorf(abi.CodeExhausted, "addresses of a run: limit %d", MaxMailboxes)
		}
		_, err := c.Exec(ctx, `INSERT INTO address VALUES (?, ?, ?)`, sha256hex.Of([]byte(token)), a.id, mailbox)
		return err
	})
	if err != nil {
		return "", err
	}
	return r.o.URL + token, nil
}

// Post is [Runs.Signal] for what was posted to an address, of which token is the last part. It fails with [ErrAddress], a *[FullError] or a *[MessageError].
func (r *Runs) Post(ctx context.Context, token string, m Message) (delivered bool, err error) {
	run, mailbox, err := r.at(ctx, token)
	if err != nil {
		return false, err
	}
	delivered, err = r.Signal(ctx, run, mailbox, m)
	if errors.As(err, new(*UnknownError)) || errors.As(err, new(*EndedError)) { // meanwhile
		err = ErrAddress
	}
	return delivered, err
}

// HasAddress reports whether a mailbox has the address with this token.
func (r *Runs) HasAddress(ctx context.Context, token string) (bool, error) {
	_, _, err := r.at(ctx, token)
	if errors.Is(err, ErrAddress) {
		return false, nil
	}
	return err == nil, err
}

// at finds the mailbox of a token. Of a wrong token, the digest is looked up, so that the time it takes says nothing about others.
func (r *Runs) at(ctx context.Context, token string) (run, mailbox string, err error) {
	err = r.db.Read(ctx, func(c *sqlite.Conn) error {
		const query = `SELECT run.name, address.mailbox FROM address JOIN run ON run.id = address.run WHERE address.token = ?`
		return c.Row(ctx, query, sha256hex.Of([]byte(token))).Scan(&run, &mailbox)
	})
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return "", "", ErrAddress
	case err != nil:
		return "", "", fmt.Errorf("look an address up: %w", err)
	case !hmac.Equal([]byte(r.sealer.token(run, mailbox)), []byte(token)): // somebody changed the file
		return "", "", ErrAddress
	}
	return run, mailbox, nil
}
