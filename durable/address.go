package durable

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/sha256hex"
	"github.com/stilehost/stile/internal/signature"
	"github.com/stilehost/stile/internal/sqlite"
)

// ErrAddress reports an address that no mailbox has: its run has ended, or there was none. Nothing tells which.
var ErrAddress = errors.New("no mailbox has this address")

// ErrSignature reports a post without the signature that its address asks for.
var ErrSignature = errors.New("the post is not signed as its address asks for")

// SecretError reports a post whose signature cannot be checked, because its secret cannot be read, or is too short to sign anything. It is an [ErrSignature].
type SecretError struct {
	Run, Mailbox, Secret string
	Err                  error
}

func (e *SecretError) Error() string {
	return fmt.Sprintf("posts to the mailbox %s of run %s are refused, because the secret %s cannot be used: %v", e.Mailbox, e.Run, e.Secret, e.Err)
}

func (e *SecretError) Unwrap() []error { return []error{ErrSignature, e.Err} }

// token is the secret part of a mailbox's address: 256 bits that follow from the owner's key, and that nobody can guess without it. It says how posts are
// verified, so that an altered row leads nowhere.
func (s *sealer) token(run, mailbox string, verify abi.Verify) string {
	h := hmac.New(sha256.New, s.addresses)
	h.Write([]byte(run + "\x00" + mailbox))
	if verify != (abi.Verify{}) {
		h.Write([]byte("\x00" + verify.As + "\x00" + verify.Secret))
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// someToken is how many characters of a token are one. A text that was cut can end with fewer, and who reads those has more than 128 bits to guess.
const someToken = 22

// addressesIn finds addresses of mailboxes in texts, up to the end of their tokens: by what comes before a token, whatever they begin with, also in JSON and in other
// URLs, and by what those of today begin with.
func addressesIn(url string) []*regexp.Regexp {
	all := []*regexp.Regexp{regexp.MustCompile(fmt.Sprintf(`(signals(?:\\*/|%%(?:25)*2[fF]|\\+u002[fF]))[A-Za-z0-9_-]{%d,}`, someToken))}
	if url != "" {
		all = append(all, regexp.MustCompile(fmt.Sprintf(`(%s)[A-Za-z0-9_-]{%d,}`, regexp.QuoteMeta(url), someToken)))
	}
	return all
}

// hide replaces the tokens of addresses in a text for people.
func (r *Runs) hide(text []byte) []byte {
	for _, re := range r.addresses {
		if re.Match(text) { // else it is not copied
			text = re.ReplaceAll(text, []byte("${1}"+host.HiddenAddress))
		}
	}
	return text
}

func (r *Runs) hideIn(text string) string { return string(r.hide([]byte(text))) }

// Address implements [abi.Mailboxes].
func (a mailboxes) Address(ctx context.Context, mailbox string, verify abi.Verify) (url string, err error) {
	r := a.runs
	if r.o.URL == "" {
		return "", abi.Errorf(abi.CodeUnavailable, "this machine has no address for signals; its owner sets one")
	}
	if as, ok := signature.Parse(verify.As); verify != (abi.Verify{}) && (!ok || as != verify.As || verify.Secret == "") {
		return "", fmt.Errorf("verify posts: %q is none of %s, or names no secret", verify.As, signature.Forms)
	}
	token := r.sealer.token(a.name, mailbox, verify)
	digest := sha256hex.Of([]byte(token))
	var sealed []byte
	if verify != (abi.Verify{}) {
		text, err := json.Marshal(verify)
		if err != nil {
			return "", fmt.Errorf("write down how posts are verified: %w", err)
		}
		sealed = r.sealer.seal(addressPlace(a.name, mailbox), text)
	}
	err = r.db.Update(ctx, func(c *sqlite.Conn) error {
		var held, known bool
		var others int
		const state = `SELECT EXISTS (SELECT 1 FROM run WHERE id = ?1 AND owner = ?2 AND fence = ?3), EXISTS (SELECT 1 FROM address WHERE token = ?4),
			(SELECT count(*) FROM address WHERE run = ?1)`
		switch err := c.Row(ctx, state, a.id, r.owner, a.fence, digest).Scan(&held, &known, &others); {
		case err != nil:
			return err
		case !held:
			return &LostError{a.name}
		case known:
			return nil
		case others >= MaxMailboxes:
			return abi.Errorf(abi.CodeExhausted, "addresses of a run: limit %d", MaxMailboxes)
		}
		_, err := c.Exec(ctx, `INSERT INTO address (token, run, mailbox, verify) VALUES (?, ?, ?, ?)`, digest, a.id, mailbox, sealed)
		return err
	})
	if err != nil {
		return "", err
	}
	return r.o.URL + token, nil
}

func addressPlace(run, mailbox string) place {
	return place{run: run, kind: "address", after: []byte(mailbox)}
}

// Post is [Runs.Signal] for what was posted to an address, of which token is the last part, with some headers by their canonical names. The data are the bytes as
// they were posted. It fails with [ErrAddress], [ErrSignature], a *[FullError] or a *[MessageError].
func (r *Runs) Post(ctx context.Context, token string, headers map[string][]string, m Message) (delivered bool, err error) {
	run, mailbox, verify, err := r.at(ctx, token)
	if err != nil {
		return false, err
	}
	if verify != (abi.Verify{}) {
		if err := r.verify(ctx, run, mailbox, verify, headers, m.Data); err != nil {
			return false, err
		}
	}
	delivered, err = r.Signal(ctx, run, mailbox, m)
	if errors.As(err, new(*UnknownError)) || errors.As(err, new(*EndedError)) { // meanwhile
		err = ErrAddress
	}
	return delivered, err
}

// verify fails with [ErrSignature], and counts that, unless a post is signed.
func (r *Runs) verify(ctx context.Context, run, mailbox string, verify abi.Verify, headers map[string][]string, body []byte) error {
	var secret string
	err := errors.New("no secrets are kept here")
	if r.o.Secret != nil {
		secret, err = r.o.Secret(ctx, verify.Secret)
	}
	if err == nil && len(secret) < signature.MinSecret {
		err = fmt.Errorf("it has fewer than %d bytes", signature.MinSecret)
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		err = &SecretError{run, mailbox, verify.Secret, err}
	case signature.Valid(verify.As, secret, headers, body, r.now()):
		return nil
	default:
		err = ErrSignature
	}
	counted := r.db.UpdateSoon(ctx, func(c *sqlite.Conn) error {
		_, err := c.Exec(ctx, `UPDATE run SET refused = refused + 1, refusal = ? WHERE name = ?`, r.now().UnixMilli(), run)
		return err
	})
	return errors.Join(err, counted)
}

// RefusedPosts are the posts to addresses of a run that were not signed as they had to be.
type RefusedPosts struct {
	Posts int       `json:"posts"`
	Last  time.Time `json:"last"`
}

// refused returns the posts to a run that were refused, or nil if none was.
func (r *Runs) refused(ctx context.Context, run string) (*RefusedPosts, error) {
	var posts int
	var last sql.NullInt64
	err := r.db.View(ctx, func(c *sqlite.Conn) error {
		return c.Row(ctx, `SELECT refused, refusal FROM run WHERE name = ?`, run).Scan(&posts, &last)
	})
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, &UnknownError{run}
	case err != nil:
		return nil, fmt.Errorf("read how many posts were refused: %w", err)
	case posts == 0:
		return nil, nil
	}
	return &RefusedPosts{posts, timeOf(last.Int64)}, nil
}

// HasAddress reports whether a mailbox has the address with this token.
func (r *Runs) HasAddress(ctx context.Context, token string) (bool, error) {
	_, _, _, err := r.at(ctx, token)
	if errors.Is(err, ErrAddress) {
		return false, nil
	}
	return err == nil, err
}

// at finds the mailbox of a token. Of a wrong token, the digest is looked up, so that the time it takes says nothing about others.
func (r *Runs) at(ctx context.Context, token string) (run, mailbox string, verify abi.Verify, err error) {
	var sealed []byte
	err = r.db.Read(ctx, func(c *sqlite.Conn) error {
		const query = `SELECT run.name, address.mailbox, address.verify FROM address JOIN run ON run.id = address.run WHERE address.token = ?`
		return c.Row(ctx, query, sha256hex.Of([]byte(token))).Scan(&run, &mailbox, &sealed)
	})
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return "", "", verify, ErrAddress
	case err != nil:
		return "", "", verify, fmt.Errorf("look an address up: %w", err)
	}
	if sealed != nil {
		text, err := r.sealer.open(addressPlace(run, mailbox), sealed)
		if err != nil || json.Unmarshal(text, &verify) != nil {
			return "", "", verify, ErrAddress // somebody changed the file
		}
	}
	if !hmac.Equal([]byte(r.sealer.token(run, mailbox, verify)), []byte(token)) { // so here
		return "", "", verify, ErrAddress
	}
	return run, mailbox, verify, nil
}
