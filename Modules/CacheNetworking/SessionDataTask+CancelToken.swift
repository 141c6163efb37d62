extension SessionDataTask {
  /// Names one callback of one task. Another task's token names nothing here: cancelling with it disturbs nobody.
  public struct CancelToken: Hashable, Sendable {
    /// Held, so that no later task can come to the same identity.
    private let issuer: Issuer
    /// In the order of joining.
    let number: Int

    /// The identity of the task that gives tokens out.
    final class Issuer: Sendable {}

    init(_ issuer: Issuer, number: Int) {
      self.issuer = issuer
      self.number = number
    }

    /// Equal for one callback of one task.
    public static func == (a: CancelToken, b: CancelToken) -> Bool { a.issuer === b.issuer && a.number == b.number }

    /// By task and callback.
    public func hash(into hasher: inout Hasher) {
      hasher.combine(ObjectIdentifier(issuer))
      hasher.combine(number)
    }
  }
}
