package extension

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stilehost/stile/internal/jsonform"
	"github.com/stilehost/stile/internal/lazyregexp"
)

// SpecError is the problem of a binding given on a command line.
type SpecError struct {
	// Spec is the text that was given.
	Spec string
	// Message says what is wrong.
	Message string
	// Instead is what to write.
	Instead string
}

// Error implements error.
func (e *SpecError) Error() string {
	return fmt.Sprintf("binding %s: %s; write %s", jsonform.Quote(e.Spec), e.Message, e.Instead)
}

const (
	maxSpec = 16 << 10 // bytes

	storeNames  = `a-z, 0-9, "_" and "-"`
	exampleSpec = "NAME=KIND, like clock=clock or notes=workspace:my-notes,rw"
	exampleHTTP = "NAME=http:https://api.example.com/repos/**,methods=GET+POST"
)

// specKinds are the kinds of a command line: those of a manifest, directories and tools.
var specKinds = append(slices.Clone(kinds), "dir", "tools")

// storeName names a workspace or a bucket, of an agent or a user where it starts with one; it may become part of a file's name.
var storeName = lazyregexp.New(`^((agent|user)\.` + ownerName + `\.)?` + ownerName + `$`)

// ParseSpecs reads the bindings of a command line with [ParseSpec], in byte order of their names. Several http specs with
// one name are the rules of one binding; any other name stands once. An error is a *[SpecError].
func ParseSpecs(specs []string) ([]Binding, error) {
	var all []Binding
	for _, spec := range specs {
		b, err := ParseSpec(spec)
		if err != nil {
			return nil, err
		}
		i := find(all, b.Name)
		if i < 0 {
			all = append(all, b)
			continue
		}
		more, isHTTP := b.Grant.(HTTP)
		rules, wasHTTP := all[i].Grant.(HTTP)
		if !isHTTP || !wasHTTP {
			return nil, &SpecError{spec, fmt.Sprintf("the name %s is taken by another binding", jsonform.Quote(b.Name)), "another name"}
		}
		all[i].Grant = HTTP{Rules: append(rules.Rules, more.Rules...)}
	}
	sortBindings(all)
	return all, nil
}

// ParseSpec reads one binding of a command line, NAME=KIND[:ARGUMENT][,OPTION]...:
//
//	github=http:https://api.github.com/repos/**,methods=GET+POST    and what http.ParseRule reads
//	local=http:http://*:8080/**                                     any host on that port; addresses are still checked
//	notes=workspace:NAME[/path][,rw]                                read-only without rw
//	files=dir:PATH[,rw]                                             a directory of the machine, read-only without rw
//	cache=kv:NAME
//	clock=clock    random=random    console=console    blob=blob
//	helpers=tools:FILE[,FILE]...                                    the tools of other extensions
//
// A comma in a URL is written %2C; the path of a directory has none. An error is a *[SpecError].
func ParseSpec(spec string) (Binding, error) {
	fail := func(instead, format string, args ...any) (Binding, error) {
		return Binding{}, &SpecError{spec, fmt.Sprintf(format, args...), instead}
	}
	name, rest, ok := strings.Cut(spec, "=")
	switch {
	case len(spec) > maxSpec:
		return fail(fmt.Sprintf("at most %d bytes", maxSpec), "it has %d bytes", len(spec))
	case !ok:
		return fail(exampleSpec, `there is no "="`)
	}
	if problem := bindingNameProblem(name); problem != "" {
		return fail(`a lower-case name, like "notes"`, "the name %s %s", jsonform.Quote(name), problem)
	}
	head, options, _ := strings.Cut(rest, ",")
	kind, argument, hasArgument := strings.Cut(head, ":")

	var grant Grant
	var err *SpecError
	switch kind {
	case "http":
		grant, err = httpSpec(argument, options)
	case "workspace":
		grant, err = workspaceSpec(argument, options)
	case "dir":
		grant, err = dirSpec(argument, options)
	case "kv":
		grant, err = kvSpec(argument, options)
	case "tools":
		grant, err = toolsSpec(argument, options)
	case "clock", "random", "console", "blob":
		if hasArgument || options != "" {
			return fail(name+"="+kind, "%s takes neither an argument nor options", kind)
		}
		grant = switches[kind]
	case "browser":
		return fail("one of "+strings.Join(specKinds, ", "), "%s is not in this version", kind)
	default:
		instead := "one of " + strings.Join(specKinds, ", ")
		if near := jsonform.Nearest(kind, specKinds); near != "" {
			instead = near
		}
		return fail(instead, "there is no kind %s", jsonform.Quote(kind))
	}
	if err != nil {
		err.Spec = spec
		return Binding{}, err
	}
	return Binding{Name: name, Grant: grant}, nil
}

func toolsSpec(argument, options string) (Grant, *SpecError) {
	files := []string{argument}
	if options != "" {
		files = append(files, strings.Split(options, ",")...)
	}
	if slices.Contains(files, "") {
		return nil, &SpecError{Message: "a file has no name", Instead: "tools:FILE[,FILE]..."}
	}
	return Tools{Files: files}, nil
}

func workspaceSpec(argument, options string) (Grant, *SpecError) {
	const example = "workspace:NAME[/path][,rw]"
	store, path, _ := strings.Cut(argument, "/")
	g := Workspace{Store: store, Path: "/" + path, Access: Read}
	if !storeName.MatchString(store) {
		return nil, &SpecError{Message: fmt.Sprintf("%s cannot name a workspace, %s can", jsonform.Quote(store), storeNames), Instead: example}
	}
	if problem := pathProblem(g.Path); problem != "" {
		return nil, &SpecError{Message: fmt.Sprintf("the path %s %s", jsonform.Quote(g.Path), problem), Instead: example}
	}
	var err *SpecError
	g.Access, err = access("workspace", options, example)
	return g, err
}

func dirSpec(argument, options string) (Grant, *SpecError) {
	const example = "dir:PATH[,rw]"
	if argument == "" || len(argument) > maxPath || strings.ContainsRune(argument, 0) {
		return nil, &SpecError{Message: "there is no path", Instead: example}
	}
	a, err := access("directory", options, example)
	return Dir{Path: argument, Access: a}, err
}

func access(what, options, example string) (Access, *SpecError) {
	switch options {
	case "":
		return Read, nil
	case "rw":
		return ReadWrite, nil
	default:
		return "", &SpecError{Message: fmt.Sprintf("a %s has no option %s", what, jsonform.Quote(options)), Instead: example}
	}
}

func kvSpec(argument, options string) (Grant, *SpecError) {
	const example = "kv:NAME"
	switch {
	case !storeName.MatchString(argument):
		return nil, &SpecError{Message: fmt.Sprintf("%s cannot name a bucket, %s can", jsonform.Quote(argument), storeNames), Instead: example}
	case options != "":
		return nil, &SpecError{Message: fmt.Sprintf("a bucket has no option %s", jsonform.Quote(options)), Instead: example}
	}
	return KV{Store: argument}, nil
}
