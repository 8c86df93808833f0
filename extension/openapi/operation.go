package openapi

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// parameter is a parameter of an operation: the input's field Key is sent as Name.
type parameter struct {
	Key string `json:"key"`
	In  string `json:"in"` // path, query or header
	// Name is the name in the request. Default: Key.
	Name string `json:"name,omitempty"`
	// Style is how lists and objects are written: comma, space, pipe, deep or json. Default: repeated as NAME=VALUE in a query, and
	// with commas elsewhere.
	Style string `json:"style,omitempty"`
}

// Limits of an operation.
const (
	maxParameters = 200
	maxSummary    = 300 // bytes of a description
)

// build makes an operation callable: its parameters, body, description and input. It returns why it cannot.
func (d *document) build(o *operation, at detail) (reason string, less bool) {
	c := d.converter(at)
	props, required := map[string]any{}, []any{}
	o.Parameters, o.Body, o.Whole = nil, "", false
	given, reason := d.parameters(o)
	if reason != "" || d.tooMuch() {
		return reason, false
	}
	var form []map[string]any // of Swagger 2.0
	var body any
	for _, p := range given {
		in, name := str(p["in"]), str(p["name"])
		switch in {
		case "body":
			body = p
			continue
		case "formData":
			form = append(form, p)
			continue
		case "path", "query", "header":
		default:
			continue // a cookie
		}
		if in == "header" && ownHeader(name) {
			continue
		}
		style, problem := styleOf(p, in, d.v2)
		switch {
		case problem != "":
			return problem, false
		case !visible(name) || in == "header" && !token(name):
			if truth(p["required"]) || in == "path" {
				return "a parameter has no usable name", false
			}
			continue
		}
		key := name
		for props[key] != nil { // the same name in a path and in a query
			key = in + "_" + key
		}
		s := c.parameterSchema(p, d.v2)
		props[key] = s
		if truth(p["required"]) || in == "path" {
			required = append(required, key)
		}
		made := parameter{Key: key, In: in, Style: style}
		if key != name {
			made.Name = name
		}
		o.Parameters = append(o.Parameters, made)
	}
	for _, name := range placeholders(o.Path) {
		if !slices.ContainsFunc(o.Parameters, func(p parameter) bool { return p.In == "path" && (p.Name == name || p.Name == "" && p.Key == name) }) {
			return "its path has a template without a parameter", false
		}
	}
	o.Parameters = slices.DeleteFunc(o.Parameters, func(p parameter) bool {
		unused := p.In == "path" && !strings.Contains(o.Path, "{"+p.name()+"}")
		if unused {
			delete(props, p.Key)
			required = slices.DeleteFunc(required, func(v any) bool { return v == p.Key })
		}
		return unused
	})
	input := map[string]any{"type": "object"}
	open := false
	switch {
	case o.Method == "GET" || o.Method == "HEAD" || o.Method == "OPTIONS": // a body means nothing there
	case !d.v2 && o.given["requestBody"] != nil:
		if open, reason = d.body(o, c, o.given["requestBody"], props, &required); reason != "" {
			return reason, false
		}
	case body != nil:
		fields := object(body)
		if open, reason = d.bodyOf(o, c, "application/json", fields["schema"], nil, truth(fields["required"]), props, &required); reason != "" {
			return reason, false
		}
	case len(form) > 0:
		if open, reason = d.form(o, c, form, props, &required); reason != "" {
			return reason, false
		}
	}
	if len(props) > 0 {
		input["properties"] = props
	}
	if len(required) > 0 {
		input["required"] = required
	}
	if !open {
		input["additionalProperties"] = false // a misspelt name would be ignored otherwise
	}
	o.Input, o.Description = input, d.describe(o, at)
	return "", c.less
}

func (p parameter) name() string {
	if p.Name != "" {
		return p.Name
	}
	return p.Key
}

// parameters are those of the operation, and those of its path that the operation does not replace.
func (d *document) parameters(o *operation) (all []map[string]any, reason string) {
	if !d.spend(parameterWork * (len(o.shared) + len(list(o.given["parameters"])))) {
		return nil, ""
	}
	at := map[[2]string]int{}
	for _, v := range slices.Concat(o.shared, list(o.given["parameters"])) {
		p, ok := d.resolve(v)
		if !ok {
			return nil, "a parameter is not in the document"
		}
		key := [2]string{str(p["in"]), str(p["name"])}
		if i, is := at[key]; is {
			all[i] = p
			continue
		}
		at[key] = len(all)
		if all = append(all, p); len(all) > maxParameters {
			return nil, "it has too many parameters"
		}
	}
	return all, ""
}

// ownHeader reports whether a header is the runtime's or the host's: OpenAPI says that parameters of these names are ignored, and others belong
// to the connection or carry credentials.
func ownHeader(name string) bool {
	switch strings.ToLower(name) {
	case "accept", "content-type", "authorization", "cookie", "host", "content-length", "transfer-encoding", "connection", "user-agent", "te", "trailer", "upgrade", "keep-alive",
		"proxy-authorization", "proxy-connection", "expect":
		return true
	}
	return false
}

// styleOf says how a parameter is written.
func styleOf(p map[string]any, in string, v2 bool) (style, problem string) {
	if v2 {
		if str(p["type"]) != "array" || in == "path" || in == "header" {
			return "", ""
		}
		switch str(p["collectionFormat"]) {
		case "multi":
			return "", ""
		case "ssv":
			return "space", ""
		case "pipes":
			return "pipe", ""
		case "tsv":
			return "", "a parameter has a style that is not supported"
		default:
			return "comma", ""
		}
	}
	if p["schema"] == nil && p["content"] != nil {
		return "json", ""
	}
	explode, given := p["explode"].(bool)
	switch style := str(p["style"]); {
	case in == "path" && style != "" && style != "simple":
		return "", "a parameter has a style that is not supported"
	case in != "query":
		return "", ""
	case style == "deepObject":
		return "deep", ""
	case style == "spaceDelimited" && !explode:
		return "space", ""
	case style == "pipeDelimited" && !explode:
		return "pipe", ""
	case given && !explode:
		return "comma", ""
	default:
		return "", ""
	}
}

// parameterSchema is the schema of a parameter.
func (c *converter) parameterSchema(p map[string]any, v2 bool) map[string]any {
	schema := p["schema"]
	if v2 {
		schema = p
	} else if schema == nil {
		for _, media := range c.keys(object(p["content"]), 1) {
			schema = object(object(p["content"])[media])["schema"]
		}
	}
	s := c.schema(schema, 0)
	if text := c.prose(str(p["description"]), c.text); text != "" {
		s["description"] = text
	}
	return s
}

// body adds a request body of OpenAPI 3.
func (d *document) body(o *operation, c *converter, v any, props map[string]any, required *[]any) (open bool, reason string) {
	fields, ok := d.resolve(v)
	if !ok {
		return false, "its body is not in the document"
	}
	content := object(fields["content"])
	media := d.chooseMedia(content)
	if media == "" {
		if len(content) == 0 {
			return false, ""
		}
		return false, "its body is neither JSON nor a form nor text"
	}
	entry := object(content[media])
	return d.bodyOf(o, c, media, entry["schema"], object(entry["encoding"]), truth(fields["required"]), props, required)
}

// chooseMedia chooses the form of a body: JSON first, then forms, then text.
func (d *document) chooseMedia(content map[string]any) string {
	best, chosen := 0, ""
	for _, media := range d.keys(content, 50) {
		if rank := bodyRank(media); rank > best {
			best, chosen = rank, media
		}
	}
	return chosen
}

func bodyRank(media string) int {
	media, _, _ = strings.Cut(strings.ToLower(media), ";")
	switch media = strings.TrimSpace(media); {
	case media == "application/json":
		return 5
	case strings.HasSuffix(media, "+json"), media == "*/*", media == "application/*":
		return 4
	case media == "application/x-www-form-urlencoded":
		return 3
	case media == "text/plain":
		return 1
	default:
		return 0
	}
}

// bodyOf adds a body of a media type. The fields of an object become fields of the input, unless parameters have their names.
func (d *document) bodyOf(o *operation, c *converter, media string, schema any, encoding map[string]any, needed bool, props map[string]any, required *[]any) (open bool, reason string) {
	kind, _, _ := strings.Cut(strings.ToLower(media), ";")
	switch rank := bodyRank(kind); rank {
	case 3:
		o.Body = "form"
		for _, name := range d.keys(encoding, 500) {
			if str(object(encoding[name])["style"]) == "deepObject" {
				o.Body = "deep"
			}
		}
	case 1:
		o.Body = "text"
	default:
		o.Body = "json"
		if rank == 4 && !strings.Contains(kind, "*") && token(strings.ReplaceAll(kind, "/", "")) && strings.Count(kind, "/") == 1 {
			o.Body = kind
		}
	}
	made := c.schema(schema, 0)
	fields := object(made["properties"])
	flat := made["type"] == "object" && len(fields) > 0 && made["anyOf"] == nil && o.Body != "text"
	for name := range fields {
		if props[name] != nil {
			flat = false
		}
	}
	if o.Body == "text" {
		made = map[string]any{"type": "string"}
	}
	if empty := object(schema); !needed && !flat && empty["properties"] != nil && len(object(empty["properties"])) == 0 && len(object(empty["additionalProperties"])) == 0 {
		o.Body = "" // documents say that there is no body in this way too
		return false, ""
	}
	if !flat {
		o.Whole = true
		key := "body"
		for props[key] != nil {
			key = "request_" + key
		}
		if key != "body" {
			return false, "a parameter is called body"
		}
		props[key] = made
		if needed {
			*required = append(*required, key)
		}
		return false, ""
	}
	maps.Copy(props, fields)
	if needed {
		*required = append(*required, list(made["required"])...)
	}
	resolved, _ := d.resolve(schema)
	closed, said := resolved["additionalProperties"].(bool)
	return !said || closed || c.less, ""
}

// form adds the form fields of Swagger 2.0.
func (d *document) form(o *operation, c *converter, form []map[string]any, props map[string]any, required *[]any) (open bool, reason string) {
	o.Body = "form"
	for _, p := range form {
		name := str(p["name"])
		switch {
		case str(p["type"]) == "file":
			return false, "its body is neither JSON nor a form nor text"
		case !visible(name) || props[name] != nil:
			if truth(p["required"]) {
				return false, "a parameter has no usable name"
			}
			continue
		}
		props[name] = c.parameterSchema(p, true)
		if truth(p["required"]) {
			*required = append(*required, name)
		}
	}
	return false, ""
}

// describe says what an operation does, and where. Search finds the words of the path too.
func (d *document) describe(o *operation, at detail) string {
	most := maxSummary
	if at.text < 60 {
		most = 120
	}
	summary, text := d.prose(str(o.given["summary"]), most), d.prose(str(o.given["description"]), 4*most)
	text = prose(sentence(text), most)
	short := strings.TrimSuffix(summary, ".")
	switch {
	case short == "":
		short = text
	case text != "" && len(short)+len(text) < most && !strings.Contains(strings.ToLower(text), strings.ToLower(short)) && len(text) > len(short):
		short += ". " + text
	case text != "" && strings.HasPrefix(strings.ToLower(text), strings.ToLower(short)):
		short = text
	}
	if truth(o.given["deprecated"]) {
		short = strings.TrimSpace("Deprecated. " + short)
	}
	where := o.Method + " " + o.Path
	if short == "" {
		return where
	}
	return strings.TrimSuffix(short, ".") + ". " + where
}

// size is how many bytes the input schema of an operation takes.
func (o *operation) size() int {
	text, err := json.Marshal(o.Input)
	if err != nil {
		return 0 // values that were decoded have JSON
	}
	return len(text)
}
