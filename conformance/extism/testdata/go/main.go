// A plug-in for Extism, which both hosts run in the tests.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/extism/go-pdk"
)

//go:wasmexport echo
func echo() int32 {
	pdk.Output(pdk.Input())
	return 0
}

// reverse makes bytes of a text that are not UTF-8.
//
//go:wasmexport reverse
func reverse() int32 {
	in := pdk.Input()
	for i := range len(in) / 2 {
		in[i], in[len(in)-1-i] = in[len(in)-1-i], in[i]
	}
	pdk.Output(in)
	return 0
}

//go:wasmexport greet
func greet() int32 {
	greeting, ok := pdk.GetConfig("greeting")
	if !ok {
		greeting = "Hello"
	}
	pdk.OutputString(greeting + ", " + pdk.InputString() + "!")
	return 0
}

// count adds to a variable, which lives as long as what holds it.
//
//go:wasmexport count
func count() int32 {
	n, _ := strconv.Atoi(string(pdk.GetVar("n")))
	n++
	pdk.SetVar("n", []byte(strconv.Itoa(n)))
	pdk.OutputString(strconv.Itoa(n))
	return 0
}

// vars keeps bytes, texts that look like bytes, and removes one.
//
//go:wasmexport vars
func vars() int32 {
	var out []string
	for i, value := range [][]byte{{0, 0xff, 0x80}, []byte("base64:AP+A"), []byte("text ü"), bytes.Repeat([]byte{0xfe}, 1000)} {
		name := "v" + strconv.Itoa(i)
		pdk.SetVar(name, value)
		out = append(out, strconv.FormatBool(bytes.Equal(pdk.GetVar(name), value)))
	}
	pdk.RemoveVar("v0")
	out = append(out, strconv.FormatBool(pdk.GetVar("v0") == nil), strconv.FormatBool(pdk.GetVar("never") == nil))
	pdk.SetVarInt("int", 1<<40+7)
	out = append(out, strconv.Itoa(pdk.GetVarInt("int")))
	pdk.OutputString(strings.Join(out, " "))
	return 0
}

// fetch makes a request that it gets as JSON, with a body, and tells all that the host says about the answer.
//
//go:wasmexport fetch
func fetch() int32 {
	var in struct {
		URL, Body string
		Method    int
		Headers   map[string]string
	}
	if err := pdk.InputJSON(&in); err != nil {
		pdk.SetError(err)
		return 1
	}
	req := pdk.NewHTTPRequest(pdk.HTTPMethod(in.Method), in.URL)
	for name, value := range in.Headers {
		req.SetHeader(name, value)
	}
	req.SetBody([]byte(in.Body))
	res := req.Send()
	headers := map[string]string{}
	for name, value := range res.Headers() {
		if strings.HasPrefix(name, "x-") || name == "content-type" {
			headers[name] = value
		}
	}
	out, _ := json.Marshal(map[string]any{"status": res.Status(), "headers": headers, "body": res.Body()})
	pdk.Output(out)
	return 0
}

//go:wasmexport logs
func logs() int32 {
	for i, level := range []pdk.LogLevel{pdk.LogDebug, pdk.LogInfo, pdk.LogWarn, pdk.LogError} {
		pdk.Log(level, fmt.Sprintf("line %d: %s", i, pdk.InputString()))
	}
	return 0
}

//go:wasmexport fail
func fail() int32 {
	pdk.SetError(errors.New("no " + pdk.InputString()))
	return 3
}

// complain sets an error and returns success.
//
//go:wasmexport complain
func complain() int32 {
	pdk.OutputString("output")
	pdk.SetErrorString("a complaint")
	return 0
}

//go:wasmexport quiet
func quiet() {}

// many allocates more blocks than fit without reusing freed ones, while Go's own heap grows.
//
//go:wasmexport many
func many() int32 {
	var kept [][]byte
	sum := 0
	for i := range 2000 {
		m := pdk.AllocateBytes(bytes.Repeat([]byte{byte(i)}, 10_000))
		b := m.ReadBytes()
		if len(b) != 10_000 || b[0] != byte(i) || b[9_999] != byte(i) {
			pdk.SetErrorString("a block has the content of another")
			return 1
		}
		kept = append(kept, b[:5_000:5_000])
		sum += len(b)
		m.Free()
	}
	for i, b := range kept {
		if b[0] != byte(i) || b[4_999] != byte(i) {
			pdk.SetErrorString("the heap has the content of a block")
			return 1
		}
	}
	pdk.OutputString(strconv.Itoa(sum))
	return 0
}

func main() {}
