package crewyard

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"time"
)

// most is how many bytes one message may have; the service sends none as long.
const most = 8 << 20

var errTooLong = errors.New("crewyard: a message is longer than anything the service sends")

type message struct{ id, kind, data string }

// scanner makes messages of bytes (HTML standard, section 9.2). lastID and
// retry outlive a connection; lastID is that of the last whole message, so one
// that is cut off comes again.
type scanner struct {
	lastID string
	retry  time.Duration

	rest  []byte
	id    string
	kind  string
	data  []string
	size  int
	after bool // The last line ended with a CR: an LF that follows belongs to it.
}

func (s *scanner) restart() {
	*s = scanner{lastID: s.lastID, retry: s.retry, id: s.lastID}
}

// push hands each message that is whole with these bytes to take, until that
// wants no more: then it gives false.
func (s *scanner) push(piece []byte, take func(message) bool) (bool, error) {
	for len(piece) > 0 {
		if s.after && piece[0] == '\n' {
			piece = piece[1:]
		}
		s.after = false
		end := bytes.IndexAny(piece, "\r\n")
		if end < 0 {
			s.rest = append(s.rest, piece...)
			break
		}
		line := string(append(s.rest, piece[:end]...))
		s.rest, s.after, piece = s.rest[:0], piece[end] == '\r', piece[end+1:]
		if found, whole := s.line(line); whole && !take(found) {
			return false, nil
		}
	}
	if len(s.rest)+s.size > most {
		return true, errTooLong
	}
	return true, nil
}

func (s *scanner) line(line string) (message, bool) {
	if line == "" {
		s.lastID = s.id
		found := message{s.id, s.kind, strings.Join(s.data, "\n")}
		whole := s.data != nil
		s.kind, s.data, s.size = "", nil, 0
		return found, whole
	}
	name, value, _ := strings.Cut(line, ":")
	value = strings.TrimPrefix(value, " ")
	switch name {
	case "data":
		s.data = append(s.data, value)
		s.size += len(value)
	case "event":
		s.kind = value
	case "id":
		if !strings.Contains(value, "\x00") {
			s.id = value
		}
	case "retry":
		if milliseconds, err := strconv.ParseUint(value, 10, 31); err == nil {
			s.retry = min(max(time.Duration(milliseconds)*time.Millisecond, time.Millisecond), longestPause)
		}
	}
	return message{}, false
}
