extension DownloaderContract {
  /// What a statement asks of an engine, or of its platform, beyond sending a request and receiving an answer.
  public struct Trait: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// The trait's name.
    public let rawValue: String

    /// A trait of a statement of one's own.
    public init(rawValue: String) { self.rawValue = rawValue }

    public var description: String { rawValue }

    /// It talks to an origin over connections of its own; a double that makes up its answers has none.
    public static let sockets = Trait(rawValue: "sockets")
    /// A request's body goes out as it is made, without being collected first.
    public static let streamingRequests = Trait(rawValue: "streamingRequests")
    /// It outlives a header section that breaks off. Foundation's URLSession on Linux does not: the process traps, and nothing
    /// above it can help. Don't run such a statement there.
    public static let cutHeads = Trait(rawValue: "cutHeads")
  }
}
