module example.com/files

go 1.26

require github.com/stilehost/stile/guest-sdk/go v0.0.0

replace github.com/stilehost/stile/guest-sdk/go => ../../../go
