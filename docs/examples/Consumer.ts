/**
 * What a consumer keeps of conferences. Each event adds to a part of the card that the other one leaves alone; of several
 * ends the first one seen wins. So neither the order of arrival nor a repeat changes where the card ends.
 */
export interface ConferenceEnded {
  readonly ConferenceId: string
  readonly EndedAt: string
  readonly DurationSeconds: number
  readonly WasRecorded: boolean
  readonly RecordingId?: string
}

export interface CallRecordingAvailable {
  readonly ConferenceId: string
  readonly RecordingId: string
}

/** One conference. As tables: the end keyed by ConferenceId, recordings by RecordingId, `on conflict do nothing`. */
export interface Card {
  readonly ended?: ConferenceEnded
  readonly recordings: ReadonlyArray<string>
}

/** By ConferenceId. */
export type Cards = ReadonlyMap<string, Card>

const nothingYet: Card = { recordings: [] }

export const onConferenceEnded = (cards: Cards, event: ConferenceEnded): Cards =>
  new Map(cards).set(event.ConferenceId, { ended: event, ...(cards.get(event.ConferenceId) ?? nothingYet) })

export const onCallRecordingAvailable = (cards: Cards, event: CallRecordingAvailable): Cards => {
  const card = cards.get(event.ConferenceId) ?? nothingYet
  const recordings = [...new Set([...card.recordings, event.RecordingId])].sort()
  return new Map(cards).set(event.ConferenceId, { ...card, recordings })
}

/** What people see. A recording that never becomes available stays `processing`; how long to show that is yours. */
export const recordingOf = ({ ended, recordings }: Card): "none" | "processing" | "available" => {
  if (recordings.length > 0) return "available"
  return ended?.WasRecorded === true ? "processing" : "none"
}
