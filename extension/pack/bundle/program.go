package bundle

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/stilehost/stile/extension/pack"
	"github.com/stilehost/stile/internal/bounded"
	"github.com/stilehost/stile/internal/child"
	"github.com/stilehost/stile/internal/printable"
)

// The program reads a request: a line of JSON, then the bytes that the bundles claim to sign. It answers with a line of JSON.
const (
	// protocol changes with the form of requests and answers, and with the checks.
	protocol = 1

	maxRequest  = 32 << 20  // bytes of the line, enough for a root and 16 bundles
	maxArtifact = 256 << 20 // bytes
	maxAnswer   = 1 << 20   // bytes
	maxReason   = 1 << 10   // bytes of why a bundle was refused

	patience = 2 * time.Minute
)

// limits bound what the program may use. They suffice for 16 bundles of the largest artifact.
var limits = child.Limits{Time: time.Minute, Memory: 2 << 30}

type request struct {
	Protocol int
	Policy   Policy
	// Bundles are verified until one of them is valid. Without any, the program only checks the policy.
	Bundles [][]byte `json:",omitempty"`
	// Artifact is the number of bytes that follow.
	Artifact int64 `json:",omitempty"`
}

type answer struct {
	Protocol int
	// Policy is why the policy cannot be used.
	Policy *problem `json:",omitempty"`
	// Problems are those of the bundles before the valid one, or of all if there is no signer.
	Problems []*problem `json:",omitempty"`
	Signer   *proof     `json:",omitempty"`
}

// proof is what a bundle proves in addition to what was asked for.
type proof struct {
	Key  string    `json:",omitempty"`
	When time.Time `json:",omitzero"`
}

// problem is an error, with the kind of error that it wraps.
type problem struct{ Kind, Text string }

var kinds = map[string]error{"policy": ErrPolicy, "trust": ErrTrust, "format": ErrFormat, "refused": ErrRefused, "large": pack.ErrTooLarge}

func newProblem(err error) *problem {
	if part, ok := errors.AsType[*pack.PartError](err); ok {
		err = part.Err // PartError names the part, which is always the bundle here
	}
	p := &problem{Text: printable.Short(err.Error(), maxReason)}
	for kind, known := range kinds {
		if errors.Is(err, known) {
			p.Kind = kind
		}
	}
	return p
}

// err returns the error, or nil if its kind is not among those that may occur.
func (p *problem) err(may ...error) error {
	if p == nil {
		return nil
	}
	kind := kinds[p.Kind]
	if !slices.Contains(may, kind) {
		return nil
	}
	return &toldError{kind, printable.Short(p.Text, maxReason)}
}

// toldError is an error in the program's words.
type toldError struct {
	kind error
	text string
}

func (e *toldError) Error() string { return e.text }
func (e *toldError) Unwrap() error { return e.kind }

// ProgramError reports that the program did not do its work. Nothing was verified.
type ProgramError struct {
	// Program is its path.
	Program string
	Reason  string
}

func (e *ProgramError) Error() string {
	return fmt.Sprintf("%s, the program that verifies Sigstore bundles, failed: %s", e.Program, e.Reason)
}

// Serve runs the program with its standard input and output. It reads a request, and answers it with the verifier that open returns for
// the policy. From then on, the process can open no file and no connection.
func Serve(in io.Reader, out io.Writer, open func(Policy) (verify func(bundle, artifact []byte) (*Signer, error), err error)) error {
	if err := child.Confine(limits); err != nil {
		return fmt.Errorf("take on limits: %w", err)
	}
	r := bufio.NewReader(io.LimitReader(in, maxRequest+maxArtifact))
	line, err := r.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("read the request: %w", err)
	}
	a, err := serve(line, r, open)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(a)
}

func serve(line []byte, rest io.Reader, open func(Policy) (func(bundle, artifact []byte) (*Signer, error), error)) (*answer, error) {
	a := &answer{Protocol: protocol}
	if asked, err := protocolOf(line); err != nil || asked != protocol {
		return a, err
	}
	var q request
	if err := decode(line, &q); err != nil {
		return nil, fmt.Errorf("read the request: %w", err)
	}
	verify, err := open(q.Policy)
	if err != nil {
		a.Policy = newProblem(err)
		return a, nil
	}
	if q.Artifact < 0 || q.Artifact > maxArtifact {
		return nil, fmt.Errorf("an artifact of %d bytes, and %d are allowed", q.Artifact, maxArtifact)
	}
	artifact := make([]byte, q.Artifact)
	if _, err := io.ReadFull(rest, artifact); err != nil {
		return nil, fmt.Errorf("read the artifact: %w", err)
	}
	for _, b := range q.Bundles {
		signer, err := verify(b, artifact)
		if err == nil {
			a.Signer = &proof{signer.Key, signer.When}
			break
		}
		a.Problems = append(a.Problems, newProblem(err))
	}
	return a, nil
}

// protocolOf reads the field that messages of all versions have.
func protocolOf(line []byte) (int, error) {
	var m struct{ Protocol int }
	err := json.Unmarshal(line, &m)
	return m.Protocol, err
}

// decode reads a message of this version.
func decode(line []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// Verifier lets a program verify bundles by one policy. Goroutines may share it.
type Verifier struct {
	program  string
	args     []string // for tests
	patience time.Duration
	policy   Policy
}

// New returns a verifier, which starts the program at a path for each question. It first asks whether the policy is usable. The
// error wraps [ErrPolicy] if parts of the policy are missing or superfluous, and [ErrTrust] if the root or the key is not valid. It
// may also be a *[ProgramError].
func New(ctx context.Context, program string, p Policy) (*Verifier, error) {
	return open(ctx, Verifier{program: program, patience: patience, policy: p})
}

func open(ctx context.Context, v Verifier) (*Verifier, error) {
	if err := v.policy.Check(); err != nil {
		return nil, err
	}
	if _, err := v.ask(ctx, nil, nil); err != nil {
		return nil, err
	}
	return &v, nil
}

// Verify returns who signed artifact, according to the first valid bundle that the policy accepts. A bundle holds a signature of the
// bytes, or a statement of cosign sign about their digest. If none is valid, the error joins a *[pack.PartError] for each, which
// wraps [ErrRefused], [ErrFormat] or [pack.ErrTooLarge]. It may also be a *[ProgramError].
func (v *Verifier) Verify(ctx context.Context, bundles [][]byte, artifact []byte) (*Signer, error) {
	if len(bundles) == 0 {
		return nil, &pack.PartError{Part: "bundle", Err: pack.ErrUnsigned}
	}
	a, err := v.ask(ctx, bundles, artifact)
	if err != nil {
		return nil, err
	}
	if a.Signer != nil {
		return &Signer{v.policy.Identity, v.policy.Issuer, a.Signer.Key, a.Signer.When}, nil
	}
	var problems []error
	for _, p := range a.Problems {
		problems = append(problems, &pack.PartError{Part: "bundle", Err: p.err(ofBundles...)})
	}
	return nil, errors.Join(problems...)
}

var (
	ofBundles  = []error{ErrRefused, ErrFormat, pack.ErrTooLarge}
	ofPolicies = []error{ErrPolicy, ErrTrust}
)

var errPatience = errors.New("it did not answer in time")

// ask starts the program, and returns an answer that answers the question.
func (v *Verifier) ask(ctx context.Context, bundles [][]byte, artifact []byte) (*answer, error) {
	line, err := json.Marshal(request{protocol, v.policy, bundles, int64(len(artifact))})
	switch {
	case err != nil:
		return nil, err
	case len(line) > maxRequest || len(artifact) > maxArtifact:
		return nil, &pack.PartError{Part: "bundle", Err: fmt.Errorf("%w: the request has %d bytes and the signed file %d; at most %d and %d are allowed",
			pack.ErrTooLarge, len(line), len(artifact), maxRequest, maxArtifact)}
	}
	ctx, stop := context.WithTimeoutCause(ctx, v.patience, errPatience)
	defer stop()
	var said []byte
	err = child.Run(ctx, append([]string{v.program}, v.args...), []string{fmt.Sprintf("GOMEMLIMIT=%d", limits.Memory/4*3)}, limits, func(to io.WriteCloser, from io.Reader) (err error) {
		go func() {
			// A program that stops reading early says why in its answer.
			_, _ = to.Write(append(line, '\n'))
			_, _ = to.Write(artifact)
			_ = to.Close()
		}()
		said, err = bounded.Read(from, maxAnswer)
		if errors.Is(err, bounded.ErrTooLarge) {
			err = fmt.Errorf("it writes more than %d bytes", maxAnswer)
		}
		return err
	})
	if failure, ok := errors.AsType[*child.Error](err); ok || errors.Is(err, errPatience) {
		reason := fmt.Sprintf("it did not answer within %v", v.patience)
		if ok {
			reason = printable.Short(failure.Error(), child.MaxWords)
		}
		return nil, &ProgramError{v.program, reason}
	}
	if err != nil {
		return nil, err
	}
	a, problem := v.read(said, len(bundles))
	if problem != "" {
		return nil, &ProgramError{v.program, problem}
	}
	if a.Policy != nil {
		return nil, a.Policy.err(ofPolicies...)
	}
	return a, nil
}

// read reads an answer, or says what is wrong with it.
func (v *Verifier) read(said []byte, bundles int) (*answer, string) {
	const other = "its output is not an answer; check that it is stile-sigstore"
	switch spoken, err := protocolOf(said); {
	case err != nil || spoken <= 0:
		return nil, other
	case spoken != protocol:
		return nil, fmt.Sprintf("it is of another version: it speaks version %d of the protocol, and this program speaks version %d; build both from the same source, with make build", spoken, protocol)
	}
	var a answer
	if decode(said, &a) != nil {
		return nil, other
	}
	known := a.Policy.err(ofPolicies...) != nil
	for _, p := range a.Problems {
		if p.err(ofBundles...) == nil {
			return nil, other
		}
	}
	answered := len(a.Problems)
	if s := a.Signer; s != nil {
		answered++
		if v.policy.Keyless() && s.Key != "" || !v.policy.Keyless() && digest.Digest(s.Key).Validate() != nil {
			return nil, other
		}
	}
	switch {
	case a.Policy != nil && known && answered == 0:
	case a.Policy == nil && (a.Signer != nil && answered <= bundles || answered == bundles):
	default:
		return nil, other
	}
	return &a, ""
}
