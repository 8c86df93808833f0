package http

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	nethttp "net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/lazyregexp"
	"github.com/stilehost/stile/internal/spelling"
)

// Credentials supplies the secrets that rules name.
type Credentials interface {
	// Get returns the secret of a name. It is called for every hop whose rule names it, and must be safe for concurrent use. The
	// text of an error is never shown: the guest and the denial learn only that the credential is not available.
	Get(ctx context.Context, name string) (string, error)
}

// MinSecret is the smallest credential in bytes. A shorter one occurs in texts by chance, so it could not be kept out of them.
const MinSecret = 8

const maxSecret = 4 << 10

var parameterName = lazyregexp.New(`^[A-Za-z0-9_.~-]{1,64}$`)

// placement says where a credential goes: into a header or into the query.
type placement struct {
	header, parameter string
	basic             bool
}

func parsePlacement(as string) (placement, error) {
	kind, name, named := strings.Cut(as, ":")
	switch {
	case as == "bearer":
		return placement{header: "authorization"}, nil
	case as == "basic":
		return placement{header: "authorization", basic: true}, nil
	case kind == "header" && named:
		name = strings.ToLower(name)
		if !httpguts.ValidHeaderFieldName(name) || forbiddenHeader(name) || safeHeader(name) {
			return placement{}, fmt.Errorf("the header %q cannot carry a credential", name)
		}
		return placement{header: name}, nil
	case kind == "query" && named:
		if !parameterName.MatchString(name) {
			return placement{}, fmt.Errorf("the query parameter %q cannot carry a credential", name)
		}
		return placement{parameter: name}, nil
	}
	return placement{}, errors.New("as is not bearer, basic, header:NAME or query:NAME")
}

// compileCredential checks that the rule names the credential's host, that the connection is private, and that the guest cannot set
// the header with the credential.
func (c *compiled) compileCredential() error {
	if c.Credential == "" {
		if c.As != "" {
			return errors.New("\"as\" requires \"credential\"")
		}
		return nil
	}
	// The name is not shown, because the operator may have written the secret itself by mistake.
	if !spelling.IsName(c.Credential) {
		return errors.New("credential is not a name of a-z, 0-9, - and _")
	}
	if c.As == "" {
		c.As = "bearer"
	}
	var err error
	if c.placement, err = parsePlacement(c.As); err != nil {
		return err
	}
	switch private := len(c.Addresses) > 0 || c.host.addr.IsValid() && special(c.host.addr) != ""; {
	case c.anyHost:
		return errors.New("a credential needs a rule that names its host")
	case c.Scheme != "https" && !private:
		return errors.New("a credential needs https, except for an address that is not public")
	case slices.Contains(c.Headers, c.placement.header):
		return fmt.Errorf("the header %s carries the credential, so the guest cannot set it", c.placement.header)
	}
	return nil
}

// CredentialProblem says why a value cannot be the credential of a rule. It is empty if the value can.
func CredentialProblem(value string) string {
	if len(value) < MinSecret || len(value) > maxSecret || !ascii(value) || !httpguts.ValidHeaderFieldValue(value) || strings.TrimSpace(value) != value {
		return fmt.Sprintf("is not %d to %d printable ASCII characters", MinSecret, maxSecret)
	}
	return ""
}

// authenticate adds the credential of q's rule to the request that is sent, and records in q the texts that the guest must not see.
func (c *Client) authenticate(ctx context.Context, q *request, sent *nethttp.Request) error {
	name := q.rule.Credential
	// The operator did not intend the secret for the target of another
	// server's redirect, even if that leads back to the first origin.
	if name == "" || q.crossed {
		return nil
	}
	deny := func(format string, args ...any) error {
		return abi.Deny(abi.Denial{Operation: q.operation(), Reason: fmt.Sprintf(format, args...), Remedy: "stile secret set " + name})
	}
	value, err := c.grant.options.Credentials.Get(ctx, name)
	if err != nil {
		return deny("the rule needs the credential %s, which is not available", name)
	}
	if problem := CredentialProblem(value); problem != "" {
		return deny("the credential %s %s", name, problem)
	}
	q.secrets = q.secrets.with(value)
	switch at := q.rule.placement; {
	case at.parameter != "":
		sent.URL.RawQuery = withParameter(q.target.query, at.parameter, value)
	case at.basic:
		if _, password, ok := strings.Cut(value, ":"); ok {
			q.secrets = q.secrets.with(password)
		}
		sent.Header.Set(at.header, "Basic "+base64.StdEncoding.EncodeToString([]byte(value)))
	case q.rule.As == "bearer":
		sent.Header.Set(at.header, "Bearer "+value)
	default:
		sent.Header.Set(at.header, value)
	}
	return nil
}

// withParameter sets a parameter of a query, replacing those of the same name.
func withParameter(query, name, value string) string {
	kept := slices.DeleteFunc(strings.Split(query, "&"), func(part string) bool {
		key, _, _ := strings.Cut(part, "=")
		decoded, err := url.QueryUnescape(key)
		return part == "" || err == nil && decoded == name
	})
	return strings.Join(append(kept, name+"="+url.QueryEscape(value)), "&")
}
