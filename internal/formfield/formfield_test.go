package formfield

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stilehost/stile/internal/jsonform"
)

func TestSecret(t *testing.T) {
	for _, text := range []string{
		"password", "Passwort oder password", "api_key", "apiKey", "API key", "accessToken", "GITHUB_TOKEN", "client-secret", "pin", "your PIN", "2fa", "otp", "recovery phrase", "seed phrase",
		"verificationCode", "card number", "pass phrase passphrase", "the one-time code",
		"passwords", "pass-word", "p\u0430ssword", "\u03c1in", "ｐａｓｓｗｏｒｄ", "pa\u0301ssword", "pássword", "pass\u200bword", "p a s s w o r d", "p.i.n", "passw0rd", "dbpassword", "clientsecret", "accesstoken", "API keys", "PINs",
		"credit card", "authentication code", "your authenticator", "SSH key", "session cookie", "mnemonic", "social security number", "recovery codes", "the code we sent you", "CVV2",
	} {
		if !Secret(text) {
			t.Errorf("%q is no secret", text)
		}
	}
	for _, text := range []string{"team", "tokenizer", "keyboard", "spinner", "passenger", "title", "compass", "secretary", "key", "author", "monkey", "zip code", "country_code", "cookie", "card", "a b c", "вес", "Κώδικας", "bypass", "authentication", "the code you wrote", "passes"} {
		if Secret(text) {
			t.Errorf("%q is a secret", text)
		}
	}
}

// A default is kept as JSON without escapes for HTML, which count for nothing and which nobody wrote.
func TestDefaultAsWritten(t *testing.T) {
	text := `"` + strings.Repeat("<&>", MaxValue/3-1) + `"`
	r := jsonform.New("schema", []byte(`{"type": "string", "default": `+text+`}`))
	if f := Read(r, "x", r.Parse()); r.Err != nil || string(f.Default) != text {
		t.Errorf("got %.60s, %v", f.Default, r.Err)
	}
}

// FuzzField reads schemas and checks values. What it accepts, it accepts again in its own form.
func FuzzField(f *testing.F) {
	for _, schema := range []string{
		`{"type": "string", "enum": ["a"], "default": "a"}`, `{"type": "integer", "minimum": 1, "maximum": 1e9, "default": 5}`, `{"type": "boolean"}`,
		`{"type": "array", "items": {"type": "string", "enum": ["x"]}, "maxItems": 2, "default": ["x"]}`, `{"type": "array"}`, `{"type": "number", "minimum": "x"}`, `[]`, `{"type": 1}`,
	} {
		for _, value := range []string{`"a"`, "1", "1e999", "[]", `["x"]`, "true", "{", `"\ud800"`, "1 1"} {
			f.Add(schema, value)
		}
	}
	f.Fuzz(func(t *testing.T, schema, value string) {
		r := jsonform.New("schema", []byte(schema))
		n := r.Parse()
		if r.Err != nil {
			return
		}
		field := Read(r, "x", n)
		if r.Err != nil {
			return
		}
		text, err := json.Marshal(field)
		if err != nil {
			t.Fatal(err)
		}
		again := jsonform.New("schema", text)
		same := Read(again, "x", again.Parse())
		if again.Err != nil {
			t.Fatalf("%s: %v", text, again.Err)
		}
		got, err := field.Check(json.RawMessage(value))
		if _, other := same.Check(json.RawMessage(value)); (err == nil) != (other == nil) {
			t.Fatalf("%s and %s differ about %s", schema, text, value)
		}
		if err == nil {
			if _, err := field.Check(got); err != nil {
				t.Fatalf("%s becomes %s: %v", value, got, err)
			}
		}
	})
}
