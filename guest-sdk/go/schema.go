//go:build wasip1

package stile

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// schema is the part of JSON Schema that describes Go types.
type schema struct {
	Type                 string             `json:"type,omitempty"`
	Description          string             `json:"description,omitempty"`
	Properties           map[string]*schema `json:"properties,omitempty"`
	Required             []string           `json:"required,omitempty"`
	AdditionalProperties any                `json:"additionalProperties,omitempty"` // false, or a *schema
	Items                *schema            `json:"items,omitempty"`
	Pattern              string             `json:"pattern,omitempty"`
	Enum                 []string           `json:"enum,omitempty"`
	Minimum              *int64             `json:"minimum,omitempty"`
}

func schemaOf[T any]() (string, error) {
	t := reflect.TypeFor[T]()
	if t.Kind() != reflect.Struct {
		return "", fmt.Errorf("the input is a %v, not a struct", t)
	}
	s, err := describeType(t, nil)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(s)
	return string(text), err
}

// describeType makes the schema of a type inside the types in within, which it must not be.
func describeType(t reflect.Type, within []reflect.Type) (*schema, error) {
	if slices.Contains(within, t) {
		return nil, fmt.Errorf("%v contains itself", t)
	}
	within = append(within, t)
	switch t.Kind() {
	case reflect.Pointer:
		return describeType(t.Elem(), within)
	case reflect.String:
		return &schema{Type: "string"}, nil
	case reflect.Bool:
		return &schema{Type: "boolean"}, nil
	case reflect.Float32, reflect.Float64:
		return &schema{Type: "number"}, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return &schema{Type: "integer"}, nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return &schema{Type: "integer", Minimum: new(int64)}, nil
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return &schema{Type: "string", Description: "base64"}, nil
		}
		items, err := describeType(t.Elem(), within)
		return &schema{Type: "array", Items: items}, err
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			return nil, fmt.Errorf("%v has keys that are no strings", t)
		}
		values, err := describeType(t.Elem(), within)
		return &schema{Type: "object", AdditionalProperties: values}, err
	case reflect.Struct:
		return describeStruct(t, within)
	case reflect.Interface:
		if t.NumMethod() == 0 {
			return &schema{}, nil
		}
	}
	return nil, fmt.Errorf("%v has no schema", t)
}

func describeStruct(t reflect.Type, within []reflect.Type) (*schema, error) {
	s := &schema{Type: "object", Properties: map[string]*schema{}, AdditionalProperties: false}
	for k := range t.NumField() {
		f := t.Field(k)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous:
			return nil, fmt.Errorf("%v embeds %v, which is not supported", t, f.Type)
		case !f.IsExported(), name == "-" && options == "":
			continue
		case name == "":
			name = f.Name
		}
		property, err := describeType(f.Type, within)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		if doc := f.Tag.Get("doc"); doc != "" {
			property.Description = doc
		}
		property.Pattern = f.Tag.Get("pattern")
		if allowed := f.Tag.Get("enum"); allowed != "" {
			property.Enum = strings.Split(allowed, ",")
		}
		s.Properties[name] = property
		if f.Type.Kind() != reflect.Pointer && !strings.Contains(options, "omitempty") && !strings.Contains(options, "omitzero") {
			s.Required = append(s.Required, name)
		}
	}
	return s, nil
}
