package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/gofrs/flock"

	"github.com/stilehost/stile/extension/lifecycle"
	"github.com/stilehost/stile/internal/atomicfile"
	"github.com/stilehost/stile/internal/private"
	"github.com/stilehost/stile/internal/sha256hex"
)

// tokensName is the name of the token file in STILE_HOME. tokens.json.spare reserves room for removing tokens on a full disk.
const tokensName = "tokens.json"

type serveToken struct {
	Add    tokenAdd    `cmd:"" help:"Create a token for an agent, and print it."`
	List   tokenList   `cmd:"" help:"List who has a token."`
	Remove tokenRemove `cmd:"" help:"Remove a token."`
}

// Help implements kong.HelpProvider.
func (*serveToken) Help() string {
	return `A client that sends a token to stile serve acts as the agent of that name. stile keeps only a hash of the token, in a file that only its owner can read, so it prints the token once. A removed token is no longer accepted.

Examples:

    stile serve token add claude
    stile serve token list
    stile serve token remove claude`
}

// tokenFlag names the token file.
type tokenFlag struct {
	TokenFile string `placeholder:"FILE" help:"File with the hashes of tokens. Default: tokens.json in STILE_HOME."`
}

func (f tokenFlag) file() (string, settings, error) {
	where, err := readSettings()
	if err != nil {
		return "", where, err
	}
	if f.TokenFile != "" {
		return f.TokenFile, where, nil
	}
	return filepath.Join(where.home, tokensName), where, os.MkdirAll(where.home, 0o700)
}

// token is what is stored about a token.
type token struct {
	// Name is the agent, User its user.
	Name string `json:"name"`
	User string `json:"user"`
	// SHA256 is the hash of the token, in hex. A token has 256 random bits, so it needs no slow hash.
	SHA256  string    `json:"sha256"`
	Created time.Time `json:"created"`
}

func hashToken(text string) string {
	return sha256hex.Of([]byte(text))
}

// readTokens reads a file of tokens. Without a file, there are none. Others must not be able to write the file, because that would
// make them agents.
func readTokens(file string) ([]token, error) {
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, &usageError{err}
	case info.Mode().Perm()&private.Any != 0:
		return nil, usagef("%s has mode %04o: others can read or write it; chmod 600 %s", file, info.Mode().Perm(), file)
	}
	text, err := readFile(file, maxText)
	if err != nil {
		return nil, err
	}
	var kept struct {
		Tokens []token `json:"tokens"`
	}
	if err := json.Unmarshal(text, &kept); err != nil {
		return nil, usagef("%s: %w", file, err)
	}
	for _, t := range kept.Tokens {
		if err := (lifecycle.Viewer{User: t.User, Agent: t.Name}).Check(); err != nil {
			return nil, usagef("%s: %w", file, err)
		}
	}
	return kept.Tokens, nil
}

// changeTokens applies change to the tokens and writes them in one step, while no other process does.
func changeTokens(ctx context.Context, file string, change func([]token) ([]token, error)) (err error) {
	lock := flock.New(file+".lock", flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, 50*time.Millisecond); err != nil {
		return fmt.Errorf("lock %s: %w", file, err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	tokens, err := readTokens(file)
	if err != nil {
		return err
	}
	if tokens, err = change(tokens); err != nil {
		return err
	}
	text, err := json.MarshalIndent(map[string][]token{"tokens": tokens}, "", "  ")
	if err != nil {
		return err
	}
	if err := regular(file); err != nil {
		return err
	}
	if err := atomicfile.ReplaceSpared(atomicfile.Machine{}, file, text); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return nil
}

// holders returns a function that looks up the holder of a token in the current file.
func holders(file string, logger *slog.Logger) func(token string) (lifecycle.Viewer, bool) {
	changing := &followed{path: file}
	var tokens atomic.Pointer[[]token]
	return func(text string) (lifecycle.Viewer, bool) {
		changing.each(func() error {
			now, err := readTokens(file)
			if err != nil {
				logger.Error("read the tokens", "error", err)
			}
			tokens.Store(&now)
			return err
		})
		return holder(*tokens.Load(), text)
	}
}

// holder returns the holder of a token, if it has one.
func holder(tokens []token, text string) (lifecycle.Viewer, bool) {
	hash := hashToken(text)
	for _, t := range tokens {
		if t.SHA256 == hash { // the comparison of hashes reveals nothing about a near guess
			return lifecycle.Viewer{User: t.User, Agent: t.Name}, true
		}
	}
	return lifecycle.Viewer{}, false
}

type tokenAdd struct {
	Name string `arg:"" help:"Name of the agent: a-z, 0-9, _ and -."`
	userFlag
	tokenFlag
	asJSON
}

// Help implements kong.HelpProvider.
func (*tokenAdd) Help() string {
	return `Examples:

    stile serve token add claude
    stile serve token add claude --user tom --json`
}

// Run implements the command.
func (c *tokenAdd) Run(ctx context.Context, s *streams) error {
	file, where, err := c.file()
	if err != nil {
		return err
	}
	v, err := c.viewer(where, c.Name)
	if err != nil {
		return err
	}
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // it never fails
	text := "stile_" + hex.EncodeToString(secret)
	err = changeTokens(ctx, file, func(tokens []token) ([]token, error) {
		if slices.ContainsFunc(tokens, func(t token) bool { return t.Name == c.Name }) {
			return nil, usagef("%s already has a token; remove it first: stile serve token remove %s", c.Name, c.Name)
		}
		return append(tokens, token{v.Agent, v.User, hashToken(text), time.Now().UTC().Truncate(time.Second)}), nil
	})
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(s.out, map[string]string{"name": v.Agent, "user": v.User, "token": text})
	}
	_, err = fmt.Fprintln(s.out, text)
	return err
}

type tokenList struct {
	tokenFlag
	asJSON
}

// Help implements kong.HelpProvider.
func (*tokenList) Help() string {
	return `Examples:

    stile serve token list
    stile serve token list --json`
}

// Run implements the command.
func (c *tokenList) Run(s *streams) error {
	file, _, err := c.file()
	if err != nil {
		return err
	}
	tokens, err := readTokens(file)
	if err != nil {
		return err
	}
	type shown struct {
		Name    string    `json:"name"`
		User    string    `json:"user"`
		Created time.Time `json:"created"`
	}
	list, rows := []shown{}, [][]string{{"AGENT", "USER", "CREATED"}}
	for _, t := range tokens {
		list = append(list, shown{t.Name, t.User, t.Created})
		rows = append(rows, []string{t.Name, t.User, when(t.Created)})
	}
	if c.JSON {
		return printJSON(s.out, map[string][]shown{"tokens": list})
	}
	_, err = io.WriteString(s.out, table("", rows))
	return err
}

type tokenRemove struct {
	Name string `arg:"" help:"Name of the agent."`
	tokenFlag
}

// Help implements kong.HelpProvider.
func (*tokenRemove) Help() string {
	return `Examples:

    stile serve token remove claude`
}

// Run implements the command.
func (c *tokenRemove) Run(ctx context.Context) error {
	file, _, err := c.file()
	if err != nil {
		return err
	}
	return changeTokens(ctx, file, func(tokens []token) ([]token, error) {
		rest := slices.DeleteFunc(slices.Clone(tokens), func(t token) bool { return t.Name == c.Name })
		if len(rest) == len(tokens) {
			return nil, usagef("%s has no token", line(c.Name, 64))
		}
		return rest, nil
	})
}
