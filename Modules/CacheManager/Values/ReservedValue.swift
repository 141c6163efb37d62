/// A value on its way from one step to the next, with its reservation in the memory budget. The reservation lasts as long as any
/// task holds the value.
struct ReservedValue<Value: Sendable>: Sendable {
  let value: Value
  /// The reservation, or `nil` if the value belongs to the memory store.
  let share: MemoryReservation?
}
