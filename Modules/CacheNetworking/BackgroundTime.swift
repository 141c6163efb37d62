/// Asks the system for time to complete transfers when the app leaves the foreground. Tests replace it by a fake.
///
/// ```swift
/// let downloader = SessionDownloader(backgroundTime: nil)   // loads are suspended with the app
/// ```
public protocol BackgroundTime: Sendable {
  /// Asks for time.
  ///
  /// - Parameter expire: Called on any thread when the system takes the time back. The caller of `begin` then returns it at once.
  /// - Returns: A closure that returns the time. It is called once.
  func begin(expire: @escaping @Sendable () -> Void) -> @Sendable () -> Void
}
