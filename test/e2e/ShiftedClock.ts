/** Preloaded into the program under test: a system clock that is off, or that stands still, as E2E_CLOCK says. */
const { E2E_CLOCK: clock = "0" } = process.env
const systemTime = Date.now

// Milliseconds to be off by, or the moment at which time stands still.
const shift = Number(clock)
Date.now = Number.isNaN(shift) ? () => Date.parse(clock) : () => systemTime() + shift
