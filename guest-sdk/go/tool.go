//go:build wasip1

// Package stile is for extensions of Stile in Go. An extension declares its tools in init functions of package main:
//
//	func init() {
//		stile.Tool("greet", "Greet somebody", func(env *stile.Env, in struct {
//			Name string `json:"name" doc:"whom to greet"`
//		}) (string, error) {
//			return "Hello " + in.Name, nil
//		})
//	}
//
//	func main() {}
//
// Build it with GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared, and make it a component with stile componentize. A tool reaches
// only what the bindings of its call give: env.Workspace("notes"), env.HTTP("api"). Goroutines may call the host, which serves one of
// them at a time.
package stile

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"unsafe"
)

// Annotations are what a tool says about itself. They are hints.
type Annotations = toolAnnotations

type tool struct {
	definition toolDefinition
	run        func(env *Env, input string) (any, error)
}

var tools []tool

// Tool declares a tool. Its input is a JSON object that the fields of In describe, and its result is Out as JSON. Tool panics if In is
// not a struct, or has a type that JSON Schema cannot describe. Call it in init functions. annotations may be left out, or be one.
//
// The tags of a field are json as in encoding/json, doc for its description, pattern for a regular expression, and enum for the
// allowed texts, separated by commas. Pointers and fields with omitempty or omitzero need not be given. The host refuses input that
// does not fit before the tool sees it.
//
// If run returns an error of a capability, the host sees which. Other errors and panics fail the call with their text.
func Tool[In, Out any](name, description string, run func(env *Env, in In) (Out, error), annotations ...Annotations) {
	schema, err := schemaOf[In]()
	if err != nil {
		panic(fmt.Sprintf("tool %s: %v", name, err))
	}
	// An empty list has encoding/json prepare for both types here, once, instead of in each call.
	_, _ = json.Marshal([]In{})
	_, _ = json.Marshal([]Out{})
	d := toolDefinition{Name: name, Description: description, InputSchema: schema}
	if len(annotations) > 0 {
		d.Annotations = annotations[0]
	}
	tools = append(tools, tool{d, func(env *Env, input string) (any, error) {
		var in In
		if err := json.Unmarshal([]byte(input), &in); err != nil {
			return nil, err
		}
		return run(env, in)
	}})
}

// returned keeps what the host reads after a function has returned. The instance serves no other call.
var returned *call

//go:wasmexport stile:extension/tools@0.1.0#describe
func describe() unsafe.Pointer {
	c := &call{}
	returned = c
	list := c.elements(len(tools), definitionSize)
	for k, t := range tools {
		storeToolDefinition(c, unsafe.Add(list, k*definitionSize), t.definition)
	}
	p := c.area(8)
	c.storePair(p, list, len(tools))
	return p
}

//go:wasmexport stile:extension/tools@0.1.0#call
func callTool(name unsafe.Pointer, nameLen uint32, input unsafe.Pointer, inputLen, env uint32) unsafe.Pointer {
	c := &call{}
	returned = c
	p := c.area(resultSize)
	output, err := runTool(takeString(name, nameLen), takeString(input, inputLen), &Env{env})
	if err != nil {
		storeResult(c, p, err)
	} else {
		c.storeString(unsafe.Add(p, resultOffset), output)
	}
	return p
}

func runTool(name, input string, env *Env) (output string, failed toolError) {
	defer func() {
		if r := recover(); r != nil {
			failed = toolErrorFailed{toolFailure{"panic", fmt.Sprint(r), string(debug.Stack())}}
		}
	}()
	for _, t := range tools {
		if t.definition.Name != name {
			continue
		}
		result, err := t.run(env, input)
		if err != nil {
			return "", failure(err)
		}
		text, err := json.Marshal(result)
		if err != nil {
			return "", failure(err)
		}
		return string(text), nil
	}
	return "", toolErrorUnknownTool{name}
}

func failure(err error) toolError {
	var denied ErrorDenied
	if errors.As(err, &denied) {
		return toolErrorDenied(denied)
	}
	if _, ok := errors.AsType[Error](err); ok {
		return toolErrorFailed{toolFailure{Name: "CapabilityError", Message: err.Error()}}
	}
	name := fmt.Sprintf("%T", err)
	if name == "*errors.errorString" || name == "*fmt.wrapError" {
		name = "error"
	}
	return toolErrorFailed{toolFailure{Name: name, Message: err.Error()}}
}
