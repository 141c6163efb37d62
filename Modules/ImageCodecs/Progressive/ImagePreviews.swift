/// The limits on the previews of a progressive JPEG.
public struct ImagePreviews: Hashable, Sendable {
  /// The number of previews per image. With zero or less, there are none. Each decodes all bytes received so far.
  public var maximum = 4
  /// The maximum width times height of the file. Larger files have no previews, because the codec stores all
  /// coefficients, whatever the target size.
  public var pixels = 25_000_000

  /// Creates limits and applies `change` to the default values.
  public init(_ change: (inout ImagePreviews) -> Void = { _ in }) { change(&self) }

  /// Up to four previews of up to 25 million pixels.
  public static let standard = ImagePreviews()
}
