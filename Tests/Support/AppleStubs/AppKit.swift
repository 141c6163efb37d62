// swift-format-ignore-file: AlwaysUseLowerCamelCase

@_exported public import AppleFoundation
// Declarations of AppKit.
//
// Source: Apple's documentation of NSImage, NSView, NSControl, NSImageView, NSButton, NSProgressIndicator, NSToolbarItem,
// NSStatusItem, NSScreen, NSWindow, NSWorkspace and NSApplication (macOS 15 SDK).
@_exported public import CoreGraphics
@_exported public import QuartzCore

public typealias NSRect = CGRect
public typealias NSSize = CGSize
public typealias NSPoint = CGPoint

open class NSGraphicsContext: NSObject {}

public struct NSImageRep {
  public struct HintKey: Hashable, RawRepresentable, Sendable {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
  }
}

// Proof of `@unchecked Sendable`: a declaration without state. AppKit's own class is declared Sendable.
open class NSImage: NSObject, @unchecked Sendable {
  public init(cgImage: CGImage, size: NSSize) { fatalError() }
  open var isTemplate: Bool {
    get { fatalError() }
    set { fatalError() }
  }
  open var size: NSSize {
    get { fatalError() }
    set { fatalError() }
  }
  open func cgImage(
    forProposedRect rect: UnsafeMutablePointer<NSRect>?, context: NSGraphicsContext?, hints: [NSImageRep.HintKey: Any]?
  ) -> CGImage? { fatalError() }
}

@MainActor
open class NSResponder: NSObject {}

@MainActor
open class NSApplication: NSResponder {
  public enum ActivationPolicy: Int, Sendable { case regular, accessory, prohibited }
  open class var shared: NSApplication { fatalError() }
  @discardableResult open func setActivationPolicy(_ activationPolicy: ActivationPolicy) -> Bool { fatalError() }
  open func activate() { fatalError() }
}

@MainActor
open class NSScreen: NSObject {
  open class var main: NSScreen? { fatalError() }
  open var backingScaleFactor: CGFloat { fatalError() }
}

@MainActor
open class NSWindow: NSResponder {
  open var backingScaleFactor: CGFloat { fatalError() }
}

@MainActor
open class NSView: NSResponder {
  public struct AutoresizingMask: OptionSet, Sendable {
    public let rawValue: UInt
    public init(rawValue: UInt) { self.rawValue = rawValue }
    public static var width: AutoresizingMask { fatalError() }
    public static var height: AutoresizingMask { fatalError() }
    public static var minXMargin: AutoresizingMask { fatalError() }
    public static var maxXMargin: AutoresizingMask { fatalError() }
    public static var minYMargin: AutoresizingMask { fatalError() }
    public static var maxYMargin: AutoresizingMask { fatalError() }
  }

  public override init() { fatalError() }
  public init(frame frameRect: NSRect) { fatalError() }
  public required init?(coder: NSCoder) { fatalError() }
  open func addSubview(_ view: NSView) { fatalError() }
  open var autoresizingMask: AutoresizingMask {
    get { fatalError() }
    set { fatalError() }
  }
  open func hitTest(_ point: NSPoint) -> NSView? { fatalError() }
  open func layout() { fatalError() }
  open var needsLayout: Bool {
    get { fatalError() }
    set { fatalError() }
  }
  open func removeFromSuperview() { fatalError() }
  open var frame: NSRect {
    get { fatalError() }
    set { fatalError() }
  }
  open func setFrameOrigin(_ newOrigin: NSPoint) { fatalError() }
  open func setFrameSize(_ newSize: NSSize) { fatalError() }
  open var subviews: [NSView] {
    get { fatalError() }
    set { fatalError() }
  }
  open var superview: NSView? { fatalError() }
  open var bounds: NSRect {
    get { fatalError() }
    set { fatalError() }
  }
  open var layer: CALayer? {
    get { fatalError() }
    set { fatalError() }
  }
  open var wantsLayer: Bool {
    get { fatalError() }
    set { fatalError() }
  }
  open func viewDidMoveToWindow() { fatalError() }
  open var window: NSWindow? { fatalError() }
}

@MainActor
open class NSControl: NSView {
  public enum ControlSize: UInt, Sendable { case regular, small, mini, large }
}

@MainActor
open class NSButton: NSControl {
  open var image: NSImage? {
    get { fatalError() }
    set { fatalError() }
  }
  open var alternateImage: NSImage? {
    get { fatalError() }
    set { fatalError() }
  }
}

@MainActor
open class NSProgressIndicator: NSView {
  public enum Style: UInt, Sendable {
    case bar = 0
    case spinning = 1
  }
  open var style: Style {
    get { fatalError() }
    set { fatalError() }
  }
  open var controlSize: NSControl.ControlSize {
    get { fatalError() }
    set { fatalError() }
  }
  open func sizeToFit() { fatalError() }
  open func startAnimation(_ sender: Any?) { fatalError() }
}

@MainActor
open class NSToolbarItem: NSObject {
  public struct Identifier: Hashable, RawRepresentable, Sendable {
    public let rawValue: String
    public init(_ rawValue: String) { self.rawValue = rawValue }
    public init(rawValue: String) { self.rawValue = rawValue }
  }
  public init(itemIdentifier: Identifier) { fatalError() }
  open var image: NSImage? {
    get { fatalError() }
    set { fatalError() }
  }
}

@MainActor
open class NSStatusBarButton: NSButton {}

@MainActor
open class NSStatusItem: NSObject {
  open var button: NSStatusBarButton? { fatalError() }
}

@MainActor
open class NSImageView: NSControl {
  open var image: NSImage? {
    get { fatalError() }
    set { fatalError() }
  }
}

open class NSWorkspace: NSObject {
  open class var shared: NSWorkspace { fatalError() }
  open var accessibilityDisplayShouldReduceMotion: Bool { fatalError() }
}
