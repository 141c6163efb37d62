#if Origin
  /// Why an origin could not be started.
  public struct OriginError: Error, CustomStringConvertible {
    /// The port that was asked for; 0 for any.
    public let port: Int
    /// What the system said.
    public let underlying: any Error

    /// For a person to read.
    public var description: String {
      "The origin cannot listen on 127.0.0.1, \(port == 0 ? "any free port" : "port \(port)"): \(underlying)"
    }
  }
#endif
