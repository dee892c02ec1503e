/**
 * Plays one life in real time: each command at its offset, one after the other, through the patient client.
 *
 * A life is disturbed when a command failed or was answered later than the margin of its windows allows; then it may end
 * otherwise than expected. A refusal in an undisturbed life means that the worker closed a room that was alive.
 */
import { Clock, Effect, Option } from "effect"
import type { Life } from "./Life.ts"
import type { Answer, MessengerWrites } from "./MessengerWrites.ts"
import type { PatientClient } from "./PatientClient.ts"
import type { Run } from "./Run.ts"
import type { Command } from "./Step.ts"

export interface Played {
  readonly endedByMessenger: boolean
  readonly disturbed: boolean
  /** The room did not take a command any more; the life was broken off there. */
  readonly refused: boolean
}

const answerTo = (run: Run, life: Life, writes: MessengerWrites, command: Command): Answer => {
  const room = run.conferenceId(life.number)
  switch (command._tag) {
    case "Provision":
      return writes.provision({
        id: room,
        chatId: run.chatId(life.number),
        dealId: run.dealId(life.number),
        tenantId: run.tenantId(life.number),
        startedByUserId: run.userId(life.number, 0),
        mediaType: command.mediaType
      })
    case "Admit":
      return writes.admit(room)
    case "Join":
      return writes.join(room, run.userId(life.number, command.user))
    case "Leave":
      return writes.leave(room, run.userId(life.number, command.user))
    case "Heartbeat":
      return writes.heartbeat(room)
    case "End":
      return writes.endConference(room)
    case "StartRecording":
      return writes.startRecording(room, run.recordingId(life.number, command.recording))
    case "AdvanceRecording":
      return writes.advanceRecording(run.recordingId(life.number, command.recording), command.status)
  }
}

/** `margin` in milliseconds. */
export const play = (
  run: Run,
  life: Life,
  writes: MessengerWrites,
  client: PatientClient,
  margin: number
): Effect.Effect<Played> =>
  Effect.gen(function* () {
    const origin = yield* Clock.currentTimeMillis
    let played: Played = { endedByMessenger: false, disturbed: false, refused: false }
    for (const { at, command } of life.steps) {
      yield* Effect.sleep(Math.max(0, origin + at - (yield* Clock.currentTimeMillis)))
      const { answer, failures } = yield* client.deliver(answerTo(run, life, writes, command))
      const lag = (yield* Clock.currentTimeMillis) - (origin + at)
      const refused = Option.contains(answer, false)
      played = {
        endedByMessenger: played.endedByMessenger || (command._tag === "End" && Option.contains(answer, true)),
        disturbed: played.disturbed || failures > 0 || lag > margin,
        refused
      }
      if (refused) break
    }
    return played
  })
