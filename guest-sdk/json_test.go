package guests

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// cJSON is the reader and the writer of JSON of the C SDK, in a program for this machine that notices each access outside memory.
type cJSON struct {
	in   io.Writer
	out  io.Reader
	said *bytes.Buffer
}

func newCJSON(t testing.TB) *cJSON {
	t.Helper()
	program := filepath.Join(t.TempDir(), "json")
	build := exec.CommandContext(t.Context(), "cc", "-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined", "-fno-sanitize-recover=all",
		"-I", "c", "-o", program, filepath.Join("testdata", "c", "json.c"), filepath.Join("c", "stile.c"))
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("cc: %v\n%s", err, output)
	}
	c := &cJSON{said: &bytes.Buffer{}}
	command := exec.Command(program)                                  //nolint:noctx // it ends with its input
	command.Env = append(os.Environ(), "ASAN_OPTIONS=detect_leaks=0") // nothing is freed
	command.Stderr = c.said
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.in = in
	if c.out, err = command.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
		if err := command.Wait(); err != nil {
			t.Errorf("the program failed: %v\n%s", err, c.said)
		}
	})
	return c
}

// copied returns a document as the program reads and writes it.
func (c *cJSON) copied(t *testing.T, document []byte) []byte {
	t.Helper()
	_, err := c.in.Write(append(binary.LittleEndian.AppendUint32(nil, uint32(len(document))), document...))
	head := make([]byte, 4)
	if err == nil {
		_, err = io.ReadFull(c.out, head)
	}
	answer := make([]byte, binary.LittleEndian.Uint32(head))
	if err == nil {
		_, err = io.ReadFull(c.out, answer)
	}
	if err != nil {
		t.Fatalf("%q: %v", document, err)
	}
	return answer
}

// deepest is STILE_JSON_DEPTH.
const deepest = 256

func depthOf(v any) int {
	most := 0
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			most = max(most, depthOf(e))
		}
	case map[string]any:
		for _, e := range v {
			most = max(most, depthOf(e))
		}
	default:
		return 0
	}
	return most + 1
}

func read(document []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(document))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("more follows: %w", err)
	}
	return v, nil
}

// written reports whether a value was written right: a number as the integer that it is, if it is one of 64 bits, else as the nearest double,
// else as null.
func written(want, got any) bool {
	switch want := want.(type) {
	case []any:
		got, ok := got.([]any)
		return ok && slices.EqualFunc(want, got, written)
	case map[string]any:
		got, ok := got.(map[string]any)
		return ok && maps.EqualFunc(want, got, written)
	case json.Number:
		f, err := strconv.ParseFloat(string(want), 64)
		if _, exponent, _ := strings.Cut(strings.ToLower(string(want)), "e"); len(exponent) < 7 {
			r, ok := new(big.Rat).SetString(string(want)) // ParseFloat is wrong for integers of more than 800 digits
			if !ok {
				return false
			}
			if r.IsInt() && r.Num().IsInt64() {
				return got == json.Number(r.Num().String())
			}
			if f, _ = r.Float64(); math.IsInf(f, 0) {
				err = strconv.ErrRange
			}
		}
		if err != nil {
			return got == nil
		}
		number, ok := got.(json.Number)
		if !ok {
			return false
		}
		again, err := strconv.ParseFloat(string(number), 64)
		return err == nil && again == f
	default:
		return want == got
	}
}

func (c *cJSON) check(t *testing.T, document []byte) {
	t.Helper()
	answer := c.copied(t, document)
	v, err := read(document)
	valid := err == nil && utf8.Valid(document)
	if deep := valid && depthOf(v) > deepest; !valid || deep {
		if !bytes.HasPrefix(answer, []byte("!")) {
			t.Fatalf("%.200q is read as %.200q, and is not JSON (%v, deep: %v)", document, answer, err, deep)
		}
		var text string
		if err := json.Unmarshal(answer[1:], &text); err != nil || len(text) < len(document) {
			t.Fatalf("%.200q as a text is %.200q, %v", document, answer[1:], err)
		}
		return
	}
	got, err := read(answer)
	if err != nil {
		t.Fatalf("%.200q is written as %.200q: %v", document, answer, err)
	}
	if !written(v, got) {
		t.Fatalf("%.300q (%d bytes) is written as %.300q", document, len(document), answer)
	}
}

var documents = []string{
	``, ` `, `null`, ` true `, `false`, `[]`, `{}`, `[ ]`, `{ }`, `[1,2]`, `[1,]`, `[,]`, `{"a":1}`, `{"a":1,}`, `{"a"}`, `{"a":}`, `{1:2}`, `[1 2]`, `[1}`, `{"a":1]`, `nul`, `nulll`, `truefalse`,
	`"a"`, `"`, `"\`, `"\"`, `"\u12"`, `"\u00zz"`, `"\ud83c\udf89"`, `"\ud83c"`, `"\udf89"`, `"\ud83c\u0041"`, `"\ud83c\ud83c\udf89"`, `"\u0000\b\f\n\r\t\/\\\""`, "\"\x01\"", "\"\x7f\"", `"🎉 Ž"`,
	"\"\xff\"", "\"\xc0\x80\"", "\"\xed\xa0\x80\"", "\"\xf4\x90\x80\x80\"", "\"\xe2\x82\"", "\"\xf0\x9f", "\xef\xbb\xbf1", `"\x"`, `'a'`, "[1]\x00", "\u00a01",
	`0`, `-0`, `-`, `01`, `1.`, `.5`, `1e`, `1e+`, `+1`, `0.1`, `1.5e3`, `1E-2`, `12.0`, `1200e-2`, `1205e-2`, `0e999999999999`, `1e999999999999`, `-1e400`, `1e-400`, `1e-999999999999`, `NaN`, `Infinity`, `0x10`,
	`9223372036854775807`, `9223372036854775808`, `-9223372036854775808`, `-9223372036854775809`, `9223372036854775807.0`, `922337203685477580.8e1`, `18446744073709551616`, `1e18`, `1e19`, `1e22`, `1e23`, `123456789012345678901234567890`,
	`5e-324`, `2.5e-324`, `2.4703282292062327e-324`, `2.4703282292062328e-324`, `4.9e-324`, `2.2250738585072014e-308`, `2.2250738585072011e-308`, `2.225073858507201136057409796709131975934819546351645648023426109724822222021076945516529523908135087914149158913039621106870086438694594645527657207407820621743379988141063267329253552286881372149012981122451451889849057222307285255133155755015914397476397983411801999323962548289017107081850690630666655994938275772572015763062690663332647565300009245888316433037779791869612049497390377829704905051080609940730262937128958950003583799967207254304360284078895771796150945516748243471030702609144621572289880258182545180325707018860872113128079512233426288368622321503775666622503982534335974568884423900265498198385487948292206894721689831099698365846814022854243330660339850886445804001034933970427567186443383770486037861622771738545623065874679014086723327636718751234567890123456789012345678901e-308`,
	`1.7976931348623157e308`, `1.7976931348623158e308`, `1.7976931348623159e308`, `1.797693134862315807e308`, `9007199254740993`, `9007199254740993.0`, `9007199254740992.5`, `9007199254740993.5`, `0.3`, `1e-7`, `0.000001`, `123456.789e300`, `1e21`, `1.5e21`, `1e300`,
	`[[[["deep"]]]]`, `{"a":{"b":[1,{"c":null}]},"a":2}`, ` { "k" : [ 1 , "x" ] , "\u006b" : { } } `, `{"":0}`, `{"a\u0000b":0}`, `["[","]","{","}",",",":","\""]`, `[[],{},[{}]]`, `[1]]`, `[[1]`,
}

func allDocuments() (all []string) {
	all = append(all, documents...)
	for _, n := range []int{deepest - 1, deepest, deepest + 1, 10_000} {
		all = append(all, strings.Repeat("[", n)+strings.Repeat("]", n), strings.Repeat(`{"a":`, n)+"1"+strings.Repeat("}", n), strings.Repeat("[", n))
	}
	for _, n := range []int{799, 800, 801, 802, 2000} { // beyond 800 digits, the rest only rounds
		all = append(all, "1"+strings.Repeat("0", n)+"e-"+strconv.Itoa(n), "0."+strings.Repeat("0", n)+"7", strings.Repeat("9", n), "1."+strings.Repeat("3", n)+"e-300", "4."+strings.Repeat("9", n)+"e-324")
		all = append(all, "9007199254740992.5"+strings.Repeat("0", n), "9007199254740992.5"+strings.Repeat("0", n)+"1", "9007199254740993.4"+strings.Repeat("9", n))
	}
	return all
}

// The C SDK reads and writes JSON as Go does, and nothing outside of a document.
func TestJSONOfC(t *testing.T) {
	c := newCJSON(t)
	for _, d := range allDocuments() {
		c.check(t, []byte(d))
		if len(d) > 5000 {
			continue
		}
		for k := range min(len(d), 40) { // cut short, and with another byte
			c.check(t, []byte(d[:k]))
			for _, other := range `"\{[]},:0e- ` + "\x00\x80\xff" {
				c.check(t, []byte(d[:k]+string(other)+d[k+1:]))
			}
		}
	}
}

func FuzzJSONOfC(f *testing.F) {
	for _, d := range documents {
		f.Add([]byte(d))
	}
	c := newCJSON(f)
	f.Fuzz(func(t *testing.T, document []byte) { c.check(t, document) })
}
