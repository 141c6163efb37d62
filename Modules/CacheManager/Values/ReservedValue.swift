/// A value on its way from one step to the next, and what it takes of the memory budget for as long as somebody has it.
struct ReservedValue<Value: Sendable>: Sendable {
  let value: Value
  /// Nil: it is the memory store's.
  let share: MemoryReservation?
}
