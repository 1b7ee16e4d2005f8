#!/bin/sh
# Posts an event to a chat by its incoming webhook (Slack, Mattermost, Rocket.Chat; Teams: a workflow that takes a JSON body):
#   WEBHOOK_FILE=/etc/mdfsck/webhook mdfsck watch ... --on-event samples/events/chat.sh
# The address is in a file, so that it does not show in the process list. jq writes the text as JSON, whatever is in it.
set -eu
webhook=${WEBHOOK_FILE:?file with the address of the webhook}
head -n 20 | jq -s --arg event "$MDFSCK_EVENT" --arg database "$MDFSCK_DATABASE" --arg count "$MDFSCK_COUNT" '
    {text: ("mdfsck: \($event): \($database) (\($count))\n" + (map("- " + (.event + ": " + .text)[0:300]) | join("\n")))}' |
    curl --silent --show-error --fail --max-time 30 --header 'Content-Type: application/json' --data-binary @- \
        --config /dev/fd/3 3<<CONFIG
url = "$(head -n 1 "$webhook")"
CONFIG
