package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxParts is how many pictures and texts a result may have.
const maxParts = 16

const outputURI = "stile://output/"

// output is a complete output, which only the session that made the call can read.
type output struct {
	session *session
	text    string
}

// reply shows the output of a call, or the part that fits with a link to the whole. keeps reports whether a part still matches the
// tool's output schema. It is nil for a tool without one.
func (r *request) reply(text []byte, keeps func(part []byte) bool) (*sdk.CallToolResult, error) {
	if keeps == nil && !r.builtin {
		if content := contentOf(text, r.options.MaxOutput); content != nil {
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
	return r.kept.put(output{r.session, string(text)}, len(text))
}

// pictures are the media types that clients show.
var pictures = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// maxContent is how many bytes of pictures and texts a result shows.
const maxContent = 8 << 20

// contentOf returns the content of a result that is nothing but {"content": [...]}, with pictures and at most so many bytes of texts as MCP
// has them. It is nil for any other result, which is shown as JSON.
func contentOf(output []byte, most int) []sdk.Content {
	if len(output) > maxContent || !bytes.HasPrefix(bytes.TrimLeft(output, " \t\r\n"), []byte(`{"content"`)) {
		return nil
	}
	var shown struct {
		Content []struct {
			Type     string `json:"type"`
			Text     string `json:"text"`
			Data     []byte `json:"data"`
			MIMEType string `json:"mimeType"`
		} `json:"content"`
	}
	d := json.NewDecoder(bytes.NewReader(output))
	d.DisallowUnknownFields()
	if d.Decode(&shown) != nil || len(shown.Content) == 0 || len(shown.Content) > maxParts {
		return nil
	}
	var content []sdk.Content
	for _, c := range shown.Content {
		switch {
		case c.Type == "text" && c.Data == nil && c.MIMEType == "" && len(c.Text) <= most:
			most -= len(c.Text)
			content = append(content, &sdk.TextContent{Text: c.Text})
		case c.Type == "image" && c.Text == "" && slices.Contains(pictures, c.MIMEType) && http.DetectContentType(c.Data) == c.MIMEType:
			content = append(content, &sdk.ImageContent{Data: c.Data, MIMEType: c.MIMEType})
		default:
			return nil
		}
	}
	return content
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
		Description: "The whole of an output that was too large for a result. The result links to it, and it is kept for a few minutes.",
	}, func(_ context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		kept, ok := e.kept.get(strings.TrimPrefix(r.Params.URI, outputURI), false)
		if !ok || kept.session.sdk != r.Session {
			return nil, sdk.ResourceNotFoundError(r.Params.URI)
		}
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: r.Params.URI, MIMEType: "application/json", Text: kept.text}}}, nil
	})
}
