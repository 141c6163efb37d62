/// A guarantee that did not hold, or a run that failed, with the observation.
struct FailedCheck: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}

func require(_ holds: Bool, _ otherwise: @autoclosure () -> String) throws {
  guard holds else { throw FailedCheck(otherwise()) }
}
