package toolsearch

import (
	"strings"
	"sync"
)

// silent are words of a question that do not say what a tool is to do.
var silent = sync.OnceValue(func() map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(`a about all am an and any are as at be been but by can could did do does each for from had has have he her here his how i id if in into is it its
		just let like me my need of on one or our out please she should so some someone something specific than that the their them then there these they thing things this those to
		too us want was we were what when where which who whom whose why will with would you your given certain particular currently now want every within using via im
		api tool tools call way give gives`) {
		m[w] = true
	}
	return m
})

// asks are words that begin a question for what there is.
var asks = map[string]bool{"which": true, "what": true, "who": true, "whose": true, "where": true, "how": true, "whats": true, "whos": true}

// Words that mean the same in names and descriptions of tools, or nearly: what people ask for on one side, and what interfaces call it. Each
// line is a group; a word of a group finds the others with the factor of the line.
const groups = `
0.75 list get fetch retrieve read show find view see display lookup search query browse enumerate
0.75 create add new make insert register
0.6 open create start
0.75 delete remove destroy erase drop
0.75 update edit patch change modify set adjust alter replace
0.6 start begin run launch trigger execute dispatch invoke
0.6 stop cancel end terminate abort kill halt
0.6 send post submit publish deliver
0.6 write create update put set
0.6 save store create put upload
0.7 upload import attach
0.7 download export
0.7 copy clone duplicate fork
0.7 enable activate turn
0.7 disable deactivate turn
0.7 close finish complete end archive
0.7 join merge combine
0.6 check verify test validate status get
0.7 allow permit grant authorize approve
0.7 deny reject decline refuse
0.7 block ban mute
0.7 invite invit add
0.8 rename name
0.7 move transfer
0.7 count number total
0.7 undo revert restore rollback
0.7 repository repo project
0.85 repository repo
0.85 organization org organisation company
0.7 person people user member account profile
0.6 everybody everyone people user member
0.7 participant attendee attend
0.8 pull pr
0.8 pullrequest pr pull
0.6 ticket issue bug
0.7 comment reply note message
0.7 message chat text msg
0.6 picture image photo avatar icon artwork cover
0.7 document doc file
0.6 file content
0.8 directory folder
0.8 configuration config setting preference option
0.7 permission access right role privilege
0.7 credential secret token key password
0.7 payment charge pay
0.7 refund return
0.7 bill invoice
0.7 customer client buyer
0.7 group team
0.7 song track music tune
0.7 tag label
0.7 schedule plan calendar
0.7 reminder remind
0.7 meeting call conference
0.7 server machine host node instance vm
0.7 event activity history log
0.7 webhook hook callback
0.7 email mail
0.6 private personal own
0.6 recent latest newest last new
0.7 popular top trending
0.7 statistic stat metric analytics usage report
0.7 sum total balance
0.7 subscription subscribe recur
0.7 device player
0.7 phone telephone mobile
0.7 category genre topic type
0.7 follow subscribe watch
0.7 release version
0.7 environment env
0.7 volume disk storage
0.7 ticket case
0.7 employee staff worker
0.7 discount coupon promotion
0.7 price cost amount fee
0.7 job task
0.7 pod container
0.7 scale resize replica
0.7 link url
0.7 current active running
0.7 line row
0.7 authenticated me self current
`

var meanings = sync.OnceValue(func() map[string]map[string]float64 {
	m := map[string]map[string]float64{}
	for line := range strings.Lines(strings.TrimSpace(groups)) {
		fields := strings.Fields(line)
		factor := float64(fields[0][2]-'0') / 10
		if len(fields[0]) == 4 {
			factor += float64(fields[0][3]-'0') / 100
		}
		for _, a := range fields[1:] {
			for _, b := range fields[1:] {
				from, to := Stem(a), Stem(b)
				if from == to {
					continue
				}
				if m[from] == nil {
					m[from] = map[string]float64{}
				}
				m[from][to] = max(m[from][to], factor)
			}
		}
	}
	return m
})

// meaning returns the stems that mean about the same as a stem, with how much they stand for it.
func meaning(stem string) map[string]float64 { return meanings()[stem] }
