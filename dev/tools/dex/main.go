// Dex runs the OpenID Connect provider Dex for tests: its server with its pages, in memory, with users and their groups
// from a JSON object on standard input. It is a program of its own since the one of Dex requires cgo.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"time"

	gosundheit "github.com/AppsFlyer/go-sundheit"
	"github.com/dexidp/dex/connector"
	"github.com/dexidp/dex/server"
	"github.com/dexidp/dex/storage"
	"github.com/dexidp/dex/storage/memory"
	"github.com/dexidp/dex/web"
)

const usersConnector = "users"

type config struct {
	Address        string
	Issuer         string
	Client         storage.Client
	IDTokenSeconds int
	Users          map[string]user
}

type user struct {
	ID       string
	Email    string
	Password string
	Groups   []string
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "dex:", err)
		os.Exit(1)
	}
}

func run() error {
	var settings config
	if err := json.NewDecoder(os.Stdin).Decode(&settings); err != nil {
		return err
	}
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	users := usersOf(settings.Users)
	server.ConnectorsConfig[usersConnector] = func() server.ConnectorConfig { return users }
	clients := storage.WithStaticClients(memory.New(logger), []storage.Client{settings.Client})
	all := storage.WithStaticConnectors(clients, []storage.Connector{{ID: usersConnector, Type: usersConnector, Name: "Users"}})
	dex, err := server.NewServer(context.Background(), server.Config{
		Issuer:             settings.Issuer,
		Storage:            all,
		SkipApprovalScreen: true,
		IDTokensValidFor:   time.Duration(settings.IDTokenSeconds) * time.Second,
		Web:                server.WebConfig{WebFS: web.FS()},
		Logger:             logger,
		HealthChecker:      gosundheit.New(),
	})
	if err != nil {
		return err
	}
	listener := &http.Server{Addr: settings.Address, Handler: dex, ReadHeaderTimeout: 10 * time.Second}
	return listener.ListenAndServe()
}

// usersOf is a connector that signs users in by name and password, with their groups.
type usersOf map[string]user

func (u usersOf) Open(string, *slog.Logger) (connector.Connector, error) { return u, nil }

func (u usersOf) Prompt() string { return "User name" }

func (u usersOf) Login(_ context.Context, _ connector.Scopes, name, password string) (connector.Identity, bool, error) {
	found, known := u[name]
	if !known || found.Password != password {
		return connector.Identity{}, false, nil
	}
	return connector.Identity{
		UserID: found.ID, Username: name, Email: found.Email, EmailVerified: true, Groups: found.Groups,
	}, true, nil
}
