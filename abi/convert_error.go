package abi

import (
	"context"
	"errors"
	"iter"
	"reflect"
	"strconv"
	"strings"
)

// unexplained is all that a guest learns about an error that was not written for guests. Such errors can name the host's files,
// addresses and users.
const unexplained = "the host failed"

var errorType = reflect.TypeFor[error]()

// isError reports whether t is the variant `error` of stile:capability/types, which is a Go error.
func isError(t *Type) bool {
	return t.Kind == KindVariant && t.Name == "error" && t.Interface != nil && t.Interface.Name == CapabilityPackage+"types"+ContractVersion
}

// errorCodec maps the variant `error` of stile:capability/types to the Go types error and *Error.
func (c *compiler) errorCodec(t *Type, goType reflect.Type) (*codec, *ValueError) {
	if goType != errorType && goType != reflect.TypeFor[*Error]() {
		return nil, misfitType(t, goType)
	}
	payloads, misfit := c.errorPayloads(t)
	if misfit != nil {
		return nil, misfit
	}
	return &codec{
		encode: func(v reflect.Value, h Handles) (Value, *ValueError) {
			err, _ := reflect.TypeAssert[error](v)
			e := guestError(err)
			if e == nil {
				return nil, &ValueError{Want: "an error for the guest", Got: describe(v), Err: err}
			}
			if int(e.Code) >= len(payloads) {
				return nil, misfitCase(len(payloads), strconv.Itoa(int(e.Code)))
			}
			variant := Variant{Case: uint32(e.Code)}
			if p := payloads[e.Code]; p.codec != nil {
				var misfit *ValueError
				if variant.Value, misfit = p.encode(p.of(reflect.ValueOf(e).Elem()), h); misfit != nil {
					return nil, misfit.in(p.name)
				}
			}
			return variant, nil
		},
		decode: func(v Value, dst reflect.Value, h Handles) *ValueError {
			variant, misfit := asVariant(v, len(payloads))
			if misfit != nil {
				return misfit
			}
			e := reflect.ValueOf(&Error{Code: Code(variant.Case)})
			if p := payloads[variant.Case]; p.codec != nil {
				if misfit := p.decode(variant.Value, p.of(e.Elem()), h); misfit != nil {
					return misfit.in(p.name)
				}
			}
			dst.Set(e)
			return nil
		},
	}, nil
}

// errorPayloads says which field of [Error] carries the payload of each case of the variant.
func (c *compiler) errorPayloads(t *Type) ([]part, *ValueError) {
	if len(t.Cases) != len(codeText) {
		return nil, &ValueError{Want: strconv.Itoa(len(codeText)) + " cases", Got: strconv.Itoa(len(t.Cases))}
	}
	payloads := make([]part, len(t.Cases))
	for i, cs := range t.Cases {
		if want := strings.ReplaceAll(codeText[i], " ", "-"); cs.Name != want {
			return nil, &ValueError{Want: "the case " + want, Got: cs.Name}
		}
		payloads[i].name = cs.Name
		if cs.Type == nil {
			continue
		}
		name, compile := "Detail", c.codec
		if Code(i) == CodeDenied {
			name, compile = "Denial", c.nilable
		} else if Code(i) == CodeTooLarge {
			name = "Size"
		}
		field, _ := reflect.TypeFor[Error]().FieldByName(name)
		made, misfit := compile(cs.Type, field.Type)
		if misfit != nil {
			return nil, misfit.in(cs.Name)
		}
		payloads[i].codec, payloads[i].of = made, fieldAt(field.Index)
	}
	return payloads, nil
}

// guestError returns what a guest learns about err. It is nil if the error concerns only the host.
func guestError(err error) *Error {
	var e *Error
	switch {
	case errors.As(err, &e) && e != nil:
	case !forGuest(err):
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		e = ErrTimedOut
	default:
		e = Errorf(CodeUnavailable, unexplained)
	}
	if e.Code == CodeDenied && e.Denial == nil {
		e = Deny(Denial{})
	}
	return e
}

// forGuest reports whether an error is about the operation. Cancellations and values that do not fit concern only the host.
func forGuest(err error) bool {
	var misfit *ValueError
	return err != nil && !errors.Is(err, context.Canceled) && !errors.As(err, &misfit)
}

// errorTree walks err and everything it wraps in the order of errors.As.
func errorTree(err error) iter.Seq[error] {
	return func(yield func(error) bool) { walkErrors(err, yield) }
}

func walkErrors(err error, yield func(error) bool) bool {
	if err == nil {
		return true
	}
	if !yield(err) {
		return false
	}
	switch e := err.(type) { //nolint:errorlint // the walk looks at one error at a time
	case interface{ Unwrap() error }:
		return walkErrors(e.Unwrap(), yield)
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			if !walkErrors(inner, yield) {
				return false
			}
		}
	}
	return true
}
