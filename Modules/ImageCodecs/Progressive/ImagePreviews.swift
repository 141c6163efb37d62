/// How a progressive JPEG is shown while it comes.
public struct ImagePreviews: Hashable, Sendable {
  /// How many previews one picture has at most. Each costs the decoding of all that is there.
  public var maximum = 4
  /// Of the file, width times height: of larger ones there are none. The codec holds all numbers of such a file, whatever size it
  /// is decoded to.
  public var pixels = 25_000_000

  /// The usual previews, but for what `change` sets.
  public init(_ change: (inout ImagePreviews) -> Void = { _ in }) { change(&self) }

  /// Up to four, of up to 25 million pixels.
  public static let standard = ImagePreviews()
}
