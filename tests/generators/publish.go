// What a client made by openapi-generator does with the service; prints the facts as JSON.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"log"
	"os"

	"example.org/publisher/fhirpub"
)

type given struct {
	Base         string
	Audience     string
	ClientID     string `json:"clientId"`
	ClientSecret string `json:"clientSecret"`
	Identifier   string
	ToRegister   fhirpub.RegisterDiagnosticReport
	ToRepeat     fhirpub.RegisterDiagnosticReport
	ToRefuse     fhirpub.RegisterDiagnosticReport
	ToCreate     fhirpub.DiagnosticReport
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// refusal returns what the service answered to a call that it refused.
func refusal(err error) any {
	var refused *fhirpub.GenericOpenAPIError
	if !errors.As(err, &refused) {
		log.Fatal("not refused: ", err)
	}
	return refused.Model()
}

func main() {
	var input given
	check(json.NewDecoder(os.Stdin).Decode(&input))
	configuration := fhirpub.NewConfiguration()
	configuration.Servers = fhirpub.ServerConfigurations{{URL: input.Base}}
	client := fhirpub.NewAPIClient(configuration)
	reports := client.DiagnosticReportAPI
	ctx := context.Background()

	request := client.AuthorizationAPI.Token(ctx).GrantType("client_credentials").
		Audience(input.Audience).ClientId(input.ClientID)
	granted, _, err := request.ClientSecret(input.ClientSecret).Execute()
	check(err)
	_, _, unknown := request.ClientSecret("wrong").Execute()
	ctx = context.WithValue(ctx, fhirpub.ContextAccessToken, granted.AccessToken)

	registered, _, err := reports.RegisterDiagnosticReport(ctx).
		RegisterDiagnosticReport(input.ToRegister).Execute()
	check(err)
	entry := registered.RegisteredDiagnosticReport.Parameter[0]
	id := entry.RegisteredDiagnosticReportDiagnosticReport.Resource.GetId()

	_, repeated, err := reports.RegisterDiagnosticReport(ctx).
		RegisterDiagnosticReport(input.ToRepeat).Execute()
	check(err)

	read, _, err := reports.ReadDiagnosticReport(ctx, id).Execute()
	check(err)

	found, _, err := reports.SearchDiagnosticReport(ctx).Identifier(input.Identifier).Execute()
	check(err)

	tried, _, err := reports.ValidateDiagnosticReport(ctx).ValidateDiagnosticReport(
		fhirpub.ValidateDiagnosticReport{RegisterDiagnosticReport: &input.ToRegister}).Execute()
	check(err)
	severities := []string{}
	for _, issue := range tried.Issue {
		severities = append(severities, issue.GetSeverity())
	}

	change := fhirpub.NewUpdateDiagnosticReport("DiagnosticReport")
	change.SetStatus("amended")
	patched, _, err := reports.UpdateDiagnosticReport(ctx, id).UpdateDiagnosticReport(*change).
		IfMatch(`W/"1"`).Prefer("return=representation").Execute()
	check(err)
	amended := patched.DiagnosticReport

	created, _, err := reports.CreateDiagnosticReport(ctx).DiagnosticReport(input.ToCreate).
		Prefer("return=representation").Execute()
	check(err)

	_, _, refused := reports.RegisterDiagnosticReport(ctx).
		RegisterDiagnosticReport(input.ToRefuse).Execute()
	outcome := refusal(refused).(fhirpub.OperationOutcome)
	places := [][]*string{}
	for _, issue := range outcome.Issue {
		places = append(places, issue.Expression)
	}

	check(json.NewEncoder(os.Stdout).Encode(map[string]any{
		"registered":   id,
		"repeated":     repeated.Header.Get("Idempotent-Content"),
		"conclusion":   read.GetConclusion(),
		"found":        found.Entry[0].Resource.DiagnosticReport.GetId(),
		"tried":        severities,
		"patched":      []string{amended.GetStatus(), amended.Meta.GetVersionId()},
		"created":      created.DiagnosticReport.ResourceType,
		"refused":      places,
		"unauthorized": refusal(unknown).(fhirpub.OAuthError).Error,
	}))
}
