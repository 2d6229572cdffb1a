// Endpoints of a bank that only its customers' phones can use: signed, with a token, encrypted. pawl judges each request (docs/DOORS.md).
//
//	PAWL_URL=http://127.0.0.1:8080 BANK='web-tier:THE-PASSWORD' go run . 127.0.0.1:8090
package main

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"time"
)

const bodyBytesMax = 131_072 // pawl judges no larger one
const queryMax = 16_384      // pawl reads no longer query

// A code can stand for no other method.
var methods = regexp.MustCompile(`^(GET|POST|PUT|PATCH|DELETE)$`)

// The client gives pawl two seconds for each of two attempts, and follows no redirect.
var pawl = http.Client{
	Timeout:       2 * time.Second,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

type object map[string]any

// An answer holds the members of the answers of all doors.
type answer struct {
	IsValid, IsOpened                   bool
	Reason, UserID, Covered, SealTicket string
	Plaintext                           []byte // Base64 in JSON, as every []byte
}

// ask calls pawl and returns its answer 200. Without one, nobody knows whether a request is genuine: the phone gets 503, and nothing is served.
func ask(door string, call object) (verdict answer, said []byte, isAnswered bool) {
	random := make([]byte, 16)
	if _, err := rand.Read(random); err != nil {
		log.Fatal(err)
	}
	// Each request of a phone gets one key. The second attempt has the same key, so a code whose answer was lost is not judged twice.
	key := hex.EncodeToString(random)
	for attempt := 0; attempt < 2; attempt++ {
		status, text, err := post(door, key, call)
		// The second answer must not keep members of a first one that could not be read.
		var told *answer
		if err == nil && status == http.StatusOK {
			if err = json.Unmarshal(text, &told); err == nil && told != nil {
				return *told, text, true
			}
		}
		log.Printf("pawl answered %s with %d: %.500s %v", door, status, text, err)
		if status >= 400 && status < 500 && status != http.StatusTooManyRequests {
			break // this call is wrong, and would be again
		}
	}
	return answer{}, nil, false
}

func post(door, key string, call object) (status int, text []byte, err error) {
	body, err := json.Marshal(call)
	if err != nil {
		return 0, nil, err
	}
	request, err := http.NewRequest(http.MethodPost, os.Getenv("PAWL_URL")+door, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	user, password, _ := strings.Cut(os.Getenv("BANK"), ":")
	request.SetBasicAuth(user, password)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Idempotency-Key", key)
	response, err := pawl.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	text, err = io.ReadAll(response.Body)
	return response.StatusCode, text, err
}

// refuse gives the same answer for all reasons. Only the log of the bank has the reason.
func refuse(w http.ResponseWriter, status int, reason any) {
	log.Printf("refused a phone with %d: %v", status, reason)
	http.Error(w, http.StatusText(status), status)
}

// A handler is called for a request that pawl found genuine. It may read only the parts of the request that are in its arguments.
type handler func(w http.ResponseWriter, userID string, body []byte)

// receive reads the values for every door: the protocol header, which apps name in one of two ways, the unparsed bytes of the body, and the
// address of the phone. Behind a proxy take the address that this proxy reports, or all phones count as one.
func receive(w http.ResponseWriter, r *http.Request, kind string) (header string, body []byte, client object, isRead bool) {
	values := map[string]bool{} // an app may send one value by both names
	for _, name := range []string{"X-PowerAuth-" + kind, "X-Svc-" + kind} {
		for _, value := range r.Header.Values(name) {
			header = value
			values[value] = true
		}
	}
	if len(values) != 1 || header == "" || len(header) > 4_096 {
		refuse(w, http.StatusUnauthorized, "no header, or two that differ")
		return "", nil, nil, false
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyBytesMax))
	if err != nil {
		refuse(w, http.StatusRequestEntityTooLarge, err)
		return "", nil, nil, false
	}
	address, _, _ := net.SplitHostPort(r.RemoteAddr)
	return header, body, object{"address": address}, true
}

// signed is for endpoints that write. resourceID is a constant that app and bank agreed on. It must not come from the phone.
func signed(resourceID string, handle handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		authorization, body, client, isRead := receive(w, r, "Authorization")
		if !isRead {
			return
		}
		query := r.URL.RawQuery // as it came
		if len(query) > queryMax || !methods.MatchString(r.Method) {
			refuse(w, http.StatusUnauthorized, "a query or a method that no code stands for")
			return
		}
		verdict, _, isAnswered := ask("/verification/code", object{"authorization": authorization, "method": r.Method,
			"resourceId": resourceID, "body": body, "query": query, "client": client})
		// A code covers the body or the query. Anybody could change the other one, so there must not be any.
		isCovered := verdict.Covered == "BODY" && query == "" || verdict.Covered == "QUERY" && len(body) == 0
		switch {
		case !isAnswered:
			refuse(w, http.StatusServiceUnavailable, "no answer")
		case !verdict.IsValid:
			refuse(w, http.StatusUnauthorized, verdict.Reason)
		case !isCovered:
			refuse(w, http.StatusUnauthorized, "the code does not cover all of it")
		default:
			handle(w, verdict.UserID, body)
		}
	}
}

// withToken is for reads only: a token covers no part of the request, so somebody who saw it may send it with another request.
func withToken(handle handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		token, _, client, isRead := receive(w, r, "Token")
		if !isRead {
			return
		}
		factors := []string{"POSSESSION", "POSSESSION_KNOWLEDGE", "POSSESSION_BIOMETRY"}
		verdict, _, isAnswered := ask("/verification/token",
			object{"token": token, "isRepeatable": true, "factors": factors, "client": client})
		switch {
		case !isAnswered:
			refuse(w, http.StatusServiceUnavailable, "no answer")
		case !verdict.IsValid:
			refuse(w, http.StatusUnauthorized, verdict.Reason)
		default:
			handle(w, verdict.UserID, nil)
		}
	}
}

// encrypted is for data that nothing between the app and this process may read. An envelope alone proves no PIN. `reply` makes the whole
// answer, because a ticket seals only one.
func encrypted(reply func(userID string, plaintext []byte) any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		encryption, body, client, isRead := receive(w, r, "Encryption")
		if !isRead {
			return
		}
		var envelope object
		if err := json.Unmarshal(body, &envelope); err != nil || envelope == nil || !areMembers(envelope) {
			refuse(w, http.StatusUnauthorized, "no envelope")
			return
		}
		opened, _, isAnswered := ask("/encryption/open",
			object{"scope": "ACTIVATION", "encryption": encryption, "envelope": envelope, "client": client})
		if !isAnswered {
			refuse(w, http.StatusServiceUnavailable, "no answer")
			return
		}
		if !opened.IsOpened {
			refuse(w, http.StatusUnauthorized, opened.Reason)
			return
		}
		plaintext, err := json.Marshal(reply(opened.UserID, opened.Plaintext))
		if err != nil {
			refuse(w, http.StatusInternalServerError, err)
			return
		}
		_, sealed, isSealed := ask("/encryption/seal", object{"sealTicket": opened.SealTicket, "plaintext": plaintext})
		if !isSealed {
			refuse(w, http.StatusServiceUnavailable, "no answer")
			return
		}
		answerWith(w, json.RawMessage(sealed))
	}
}

var word, printable = regexp.MustCompile(`^[a-zA-Z]+$`), regexp.MustCompile(`^[ -~]*$`)

// areMembers says whether all members have the form of an envelope: words with Base64 or a number. pawl would answer others as a mistake of
// the bank.
func areMembers(envelope object) bool {
	for name, value := range envelope {
		text, isText := value.(string)
		_, isNumber := value.(float64)
		if !word.MatchString(name) || !isNumber && !(isText && printable.MatchString(text)) {
			return false
		}
	}
	return true
}

func answerWith(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(value); err != nil {
		log.Print(err)
	}
}

func main() {
	http.HandleFunc("/transfer", signed("/transfer", func(w http.ResponseWriter, userID string, body []byte) {
		var payment struct{ Amount float64 }
		if err := json.Unmarshal(body, &payment); err != nil {
			http.Error(w, "amount", http.StatusBadRequest)
			return
		}
		answerWith(w, object{"from": userID, "amount": payment.Amount})
	}))
	http.HandleFunc("/accounts", withToken(func(w http.ResponseWriter, userID string, _ []byte) {
		answerWith(w, object{"of": userID, "accounts": []string{"DE89370400440532013000"}})
	}))
	http.HandleFunc("/statement", encrypted(func(userID string, plaintext []byte) any {
		var question struct{ Month string }
		if err := json.Unmarshal(plaintext, &question); err != nil {
			return object{"error": "month"}
		}
		return object{"of": userID, "month": question.Month, "lines": []string{}}
	}))
	listener, err := net.Listen("tcp", os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	log.Printf("The bank listens on http://%s", listener.Addr())
	log.Fatal((&http.Server{ReadTimeout: 10 * time.Second}).Serve(listener))
}
