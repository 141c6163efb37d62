/// The properties of a browser's window, which a page can see.
public struct BrowserOptions: Sendable {
  /// The value of `prefers-color-scheme`.
  public enum ColorScheme: String, Sendable {
    case light
    case dark
  }

  /// The media type that style sheets apply to.
  public enum Media: String, Sendable {
    case screen
    case print
  }

  /// The size of the viewport, in CSS pixels.
  public struct Size: Sendable, Hashable {
    public var width: Int
    public var height: Int

    public init(width: Int, height: Int) { (self.width, self.height) = (width, height) }

    /// A small laptop's window.
    public static let desktop = Size(width: 1280, height: 900)
    /// A phone in portrait orientation.
    public static let phone = Size(width: 390, height: 844)
  }

  public var size = Size.desktop
  /// Whether the page sees a touch screen and lays itself out as on a phone: the viewport's `meta` element applies.
  public var isMobile = false
  /// Device pixels per CSS pixel.
  public var scale = 1.0
  public var colorScheme = ColorScheme.light
  public var media = Media.screen
  /// The value of `prefers-reduced-motion`. By default `reduce`, so that no test waits for an animation.
  public var reducesMotion = true
  /// The time limit of a script, which is that of ``BrowserSession/evaluate(_:_:as:)``.
  public var scriptTimeout = Duration.seconds(300)

  public init(_ change: (inout Self) -> Void = { _ in }) { change(&self) }

  /// A phone: its size, two device pixels per CSS pixel, a touch screen.
  public static var phone: Self {
    Self {
      $0.size = .phone
      $0.isMobile = true
      $0.scale = 2
    }
  }
}
