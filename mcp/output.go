package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stilehost/stile/internal/toolcontent"
)

const outputURI = "stile://output/"

// output is a complete output, which only the session that made the call can read.
type output struct {
	session *session
	text    string
	mime    string // of a file; JSON has none
}

// size is what counts for an output, even an empty one, so that there are never many.
func (o output) size() int { return len(o.text) + len(o.mime) + 4096 }

// reply shows the output of a call, or the part that fits with a link to the whole. keeps reports whether a part still matches the
// tool's output schema. It is nil for a tool without one.
func (r *request) reply(text []byte, keeps func(part []byte) bool) (*sdk.CallToolResult, error) {
	if keeps == nil && !r.builtin {
		if content := contentOf(text, r.options.MaxOutput, r.keepFile); content != nil {
			return &sdk.CallToolResult{Content: content}, nil
		}
	}
	if len(text) <= r.options.MaxOutput && !deep(text) {
		result := &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(text)}}}
		structure(result, text)
		return result, nil
	}
	kept := cutJSON(text, r.options.MaxOutput, !r.builtin && keeps == nil)
	broken := keeps != nil && !keeps(kept)
	note := fmt.Sprintf("This is a part of the result, which has %d bytes; at most %d are shown.", len(text), r.options.MaxOutput)
	result := &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(kept)}}}
	if name := r.keep(text); name != "" {
		note += fmt.Sprintf(" All of it can be read as the resource %s for %s.", outputURI+name, keepFor)
		size := int64(len(text))
		result.Content = append(result.Content, &sdk.ResourceLink{
			URI: outputURI + name, Name: "output", Title: "All of the result of " + r.tool.Name, MIMEType: "application/json", Size: &size,
		})
	}
	if broken {
		result.IsError = true // clients refuse a result that does not match the schema
	} else {
		structure(result, kept)
	}
	result.Content = append(result.Content, &sdk.TextContent{Text: note})
	return result, nil
}

// keep stores an output and returns its name, or "" if it is too large. It copies only what it stores.
func (r *request) keep(text []byte) string {
	if len(text) > maxKept {
		return ""
	}
	o := output{r.session, string(text), ""}
	return r.kept.put(o, o.size())
}

// contentOf returns the content of a result that is nothing but {"content": [...]}, with pictures, sounds, files and at most so many bytes of
// texts as MCP has them. It is nil for any other result, which is shown as JSON. keep stores a file and returns its address, or "" if there is
// no room.
func contentOf(output []byte, most int, keep func(toolcontent.Part) string) []sdk.Content {
	parts, ok := toolcontent.Parse(output)
	if !ok {
		return nil
	}
	texts := 0
	for _, p := range parts {
		texts += len(p.Text)
	}
	if texts > most {
		return nil
	}
	var content []sdk.Content
	for _, p := range parts {
		switch p.Type {
		case "image":
			content = append(content, &sdk.ImageContent{Data: p.Data, MIMEType: p.MIMEType})
		case "audio":
			content = append(content, &sdk.AudioContent{Data: p.Data, MIMEType: p.MIMEType})
		case "file":
			size := int64(len(p.Data))
			uri := keep(p)
			if uri == "" {
				content = append(content, &sdk.TextContent{Text: fmt.Sprintf("The file %s of %d bytes is too large to be kept.", p.Name, size)})
				continue
			}
			content = append(content, &sdk.ResourceLink{URI: uri, Name: p.Name, MIMEType: p.MIMEType, Size: &size})
		default:
			content = append(content, &sdk.TextContent{Text: p.Text})
		}
	}
	return content
}

// keepFile stores a file for its session, and returns its address.
func (r *request) keepFile(p toolcontent.Part) string {
	if len(p.Data) > maxKept {
		return ""
	}
	o := output{r.session, string(p.Data), p.MIMEType}
	name := r.kept.put(o, o.size())
	if name == "" {
		return ""
	}
	return outputURI + name
}

// structure adds JSON as structured content. For clients before 2026-07-28, that must be an object.
func structure(result *sdk.CallToolResult, output []byte) {
	if strings.HasPrefix(strings.TrimLeft(string(output[:min(len(output), 16)]), " \t\r\n"), "{") {
		result.StructuredContent = json.RawMessage(output)
	}
}

// addResources offers the outputs that did not fit.
func (e *endpoint) addResources() {
	e.sdk.AddResourceTemplate(&sdk.ResourceTemplate{
		URITemplate: outputURI + "{name}", Name: "output", Title: "Output of a call", MIMEType: "application/json",
		Description: "The whole of an output that was too large for a result, or a file that a tool returned. The result links to it, and it is kept for a few minutes.",
	}, func(_ context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		kept, ok := e.kept.get(strings.TrimPrefix(r.Params.URI, outputURI), false)
		if !ok || kept.session.sdk != r.Session {
			return nil, sdk.ResourceNotFoundError(r.Params.URI)
		}
		if kept.mime != "" {
			return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: r.Params.URI, MIMEType: kept.mime, Blob: []byte(kept.text)}}}, nil
		}
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: r.Params.URI, MIMEType: "application/json", Text: kept.text}}}, nil
	})
}
