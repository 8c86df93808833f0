package durable

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/sqlite"
)

// TestHide has tokens of addresses in all kinds of texts.
func TestHide(t *testing.T) {
	r := functions(t)
	token := r.sealer.token("run", "mailbox", abi.Verify{})
	for text, want := range map[string]string{
		"T":                             "T", // nobody knows what it is
		"https://h.example/signals/T":   "https://h.example/signals/*",
		"https://h.example/x/signals/T": "https://h.example/x/signals/*",
		`{"a": "/signals/T", "b": ["http://127.0.0.1:7341/signals/T"]}`:        `{"a": "/signals/*", "b": ["http://127.0.0.1:7341/signals/*"]}`,
		`{"url":"https:\/\/h.example\/signals\/T"}`:                            `{"url":"https:\/\/h.example\/signals\/*"}`,
		`"{\"url\":\"https:\\\/\\\/h.example\\\/signals\\\/T\"}"`:              `"{\"url\":\"https:\\\/\\\/h.example\\\/signals\\\/*\"}"`,
		`https:\u002f\u002Fh.example\u002fsignals\u002FT`:                      `https:\u002f\u002Fh.example\u002fsignals\u002F*`,
		"https://a.example/?to=https%3A%2F%2Fh.example%2Fsignals%2FT&x=1":      "https://a.example/?to=https%3A%2F%2Fh.example%2Fsignals%2F*&x=1",
		"/?to=https%253a%252f%252fh.example%252fsignals%252fT":                 "/?to=https%253a%252f%252fh.example%252fsignals%252f*",
		"/signals/T?x=1 /signals/T/more /signals/T.":                           "/signals/*?x=1 /signals/*/more /signals/*.",
		"/signals/" + token[:30] + "...":                                       "/signals/*...", // it was cut
		"https://api.example/v1/signals/latest /signals/ signals/of-yesterday": "https://api.example/v1/signals/latest /signals/ signals/of-yesterday",
	} {
		text, want = strings.ReplaceAll(text, "T", token), strings.ReplaceAll(strings.ReplaceAll(want, "T", token), "*", "[address]")
		if got := r.hideIn(text); got != want {
			t.Errorf("%s is shown as %s", text, got)
		}
		if json.Valid([]byte(text)) != json.Valid([]byte(want)) {
			t.Errorf("%s is no JSON", want)
		}
	}
}

// TestOldHistory has what an earlier version kept of a log, with addresses.
func TestOldHistory(t *testing.T) {
	r := functions(t)
	run := r.started(t)
	url := "https://h.example/signals/" + r.sealer.token(run.Name, "mailbox", abi.Verify{})
	text, err := json.Marshal(history{Attempt: 1, Count: 1, Operations: []Operation{{Attempt: 1, Number: 1, Function: "set", Arguments: url, Answer: url, State: Answered}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.db.Update(t.Context(), func(c *sqlite.Conn) error {
		w, err := findRun(t.Context(), c, run.Name)
		if err != nil {
			return err
		}
		_, err = c.Exec(t.Context(), `INSERT INTO history VALUES (?, ?)`, w.id, r.sealer.seal(historyPlace(run.Name, 0), text))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	latest, err := r.Latest(t.Context(), run.Name)
	for o, damage := range r.Operations(t.Context(), run.Name, Operation{}) {
		latest, err = append(latest, o), errors.Join(err, damage)
	}
	if err != nil || len(latest) != 2 {
		t.Fatal(latest, err)
	}
	for _, o := range latest {
		if want := "https://h.example/signals/[address]"; o.Arguments != want || o.Answer != want {
			t.Errorf("got %+v", o)
		}
	}
}
