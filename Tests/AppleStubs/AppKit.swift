// swift-format-ignore-file: AlwaysUseLowerCamelCase
// Declarations of AppKit.
@_exported public import CoreGraphics
@_exported public import Foundation
@_exported public import QuartzCore

public typealias NSRect = CGRect
public typealias NSSize = CGSize

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
  open var window: NSWindow? { fatalError() }
}

@MainActor
open class NSControl: NSView {}

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
