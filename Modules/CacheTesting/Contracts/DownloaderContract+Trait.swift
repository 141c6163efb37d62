extension DownloaderContract {
  /// A capability that a statement needs from a downloader or its platform, beyond sending requests and receiving
  /// responses.
  public struct Trait: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// The name of the trait.
    public let rawValue: String

    /// Creates a trait for a custom statement.
    public init(rawValue: String) { self.rawValue = rawValue }

    public var description: String { rawValue }

    /// The downloader connects to the origin. A double that makes up its responses does not.
    public static let sockets = Trait(rawValue: "sockets")
    /// The downloader sends a request body while it is produced, without collecting it first.
    public static let streamingRequests = Trait(rawValue: "streamingRequests")
    /// The downloader returns a body that it may collect together with its head (`DownloadRequest.collectUpTo`).
    public static let collectedBodies = Trait(rawValue: "collectedBodies")
    /// The downloader survives an incomplete header section. Foundation's `URLSession` on Linux does not: it traps the
    /// process. Do not run such a statement with it.
    public static let cutHeads = Trait(rawValue: "cutHeads")
  }
}
