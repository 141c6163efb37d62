/// Asks a system for time to finish what runs when the app leaves the foreground. Apple's `UIApplication` behind a seam, so that
/// the decisions about it can be tested anywhere.
///
/// ```swift
/// let downloader = SessionDownloader(backgroundTime: nil)   // loads are suspended with the app
/// ```
public protocol BackgroundTime: Sendable {
  /// Time is needed from here on.
  ///
  /// - Parameter expire: to be called, on any thread, when the system wants it back. The time must be given back right after.
  /// - Returns: gives the time back; called once.
  func begin(expire: @escaping @Sendable () -> Void) -> @Sendable () -> Void
}
