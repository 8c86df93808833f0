package host

import "github.com/stilehost/stile/abi"

// RecordedValues is one operation of a recording as WIT values, which must not be changed. Handles are numbers that the
// recording assigns: 1 is the env of the call, and no number stands for two handles.
type RecordedValues struct {
	// Interface, Func and Binding name it as those of [Operation] do; Binding is empty for a `get`, which has it as an
	// argument. They are one line each, and printable.
	Interface, Func, Binding string
	// Type is the function. If it is unknown, Type, Args and Answer are nil.
	Type *abi.Func
	// Args is nil if they are long and the recording has only their digest.
	Args   []abi.Value
	Answer abi.Value
	// Error is set when the operation ended the call. Then there is no answer.
	Error *Outcome
}

// Values reads the recorded operations like [Recording.All], but in full and for programs. Do not trust their contents: they come
// from the guest and the outside world. With a *[DamagedError], it also returns the operations before the damage.
func (r *Recording) Values(known *abi.Resolve) ([]RecordedValues, error) {
	list, damage := r.parse(known)
	all := make([]RecordedValues, 0, len(list))
	d := &decoder{}
	for i, o := range list {
		v, err := o.values(d)
		if err != nil {
			return all, &DamagedError{i + 1, err.Error()}
		}
		all = append(all, v)
	}
	return all, damage
}

// values reads an operation with d, which counts the values of all operations.
func (o recordedOperation) values(d *decoder) (RecordedValues, error) {
	v := RecordedValues{Interface: o.iface, Func: o.name, Binding: o.binding, Type: o.fn, Error: o.outcome}
	if o.fn == nil {
		return v, nil
	}
	if o.args[0] == argsWhole {
		d.rest = o.args[1:]
		v.Args = make([]abi.Value, len(o.fn.Params))
		for i, p := range o.fn.Params {
			v.Args[i] = d.value(p.Type)
		}
		if err := d.end(); err != nil {
			return v, err
		}
	}
	if o.outcome != nil {
		return v, nil
	}
	d.rest = o.answer
	v.Answer = d.value(o.fn.Result)
	return v, d.end()
}

// end returns the first error of the decoder. Bytes left over are an error too.
func (d *decoder) end() error {
	if d.err == nil && len(d.rest) > 0 {
		return errMalformed
	}
	return d.err
}
