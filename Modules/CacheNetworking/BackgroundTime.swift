/// A provider of background execution time, which lets transfers complete after the app leaves the foreground. Tests replace it
/// with a fake.
///
/// ```swift
/// let downloader = SessionDownloader(backgroundTime: nil)   // transfers are suspended with the app
/// ```
public protocol BackgroundTime: Sendable {
  /// Requests background time.
  ///
  /// - Parameter expire: A closure called on any thread when the time expires. The caller of `begin` then returns it at once.
  /// - Returns: A closure that returns the time. It is called once.
  func begin(expire: @escaping @Sendable () -> Void) -> @Sendable () -> Void
}
