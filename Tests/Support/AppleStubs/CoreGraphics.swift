// swift-format-ignore-file: AlwaysUseLowerCamelCase

public import AppleFoundation

// Declarations of Core Graphics, and of Core Foundation, which Apple's Foundation exports. The types of Core Foundation are the
// classes of Foundation to which they are toll-free bridged. These are no Swift collections, so that a cast to or from one is
// checked by the rules for bridging.
//
// Source: Apple's documentation of CGImage, CGContext, CGColorSpace, CGDataProvider and CGBitmapInfo (iOS 18 SDK), and of
// "Toll-Free Bridged Types".
@_exported public import struct AppleFoundation.CGFloat
@_exported public import struct AppleFoundation.CGPoint
@_exported public import struct AppleFoundation.CGRect
@_exported public import struct AppleFoundation.CGSize

public typealias CFArray = NSArray
public typealias CFData = NSData
public typealias CFDictionary = NSDictionary
public typealias CFMutableData = NSMutableData
public typealias CFString = NSString
public typealias CFTypeRef = AnyObject

public final class CGColorSpace {
  public static var sRGB: CFString { NSString(string: "kCGColorSpaceSRGB") }
  /// The program ViewTree draws nothing.
  public init?(name: CFString) { return nil }
  public init?(iccData: CFTypeRef) { fatalError() }
  public var model: CGColorSpaceModel { fatalError() }
}

public enum CGColorSpaceModel: Int32, Sendable {
  case unknown = -1
  case monochrome, rgb, cmyk, lab, deviceN, indexed, pattern, XYZ
}

public enum CGImageAlphaInfo: UInt32, Sendable {
  case none, premultipliedLast, premultipliedFirst, last, first, noneSkipLast, noneSkipFirst, alphaOnly
}

public struct CGBitmapInfo: OptionSet, Sendable {
  public let rawValue: UInt32
  public init(rawValue: UInt32) { self.rawValue = rawValue }
  public static var byteOrder32Little: CGBitmapInfo { fatalError() }
}

public enum CGColorRenderingIntent: Int32, Sendable { case defaultIntent }

public enum CGInterpolationQuality: Int32, Sendable { case `default`, none, low, medium, high }

public typealias CGDataProviderReleaseDataCallback = @convention(c) (UnsafeMutableRawPointer?, UnsafeRawPointer, Int) -> Void

public final class CGDataProvider {
  public init?(
    dataInfo info: UnsafeMutableRawPointer?, data: UnsafeRawPointer, size: Int,
    releaseData: @escaping CGDataProviderReleaseDataCallback
  ) { fatalError() }
}

public final class CGImage {
  public init?(
    width: Int, height: Int, bitsPerComponent: Int, bitsPerPixel: Int, bytesPerRow: Int, space: CGColorSpace,
    bitmapInfo: CGBitmapInfo, provider: CGDataProvider, decode: UnsafePointer<CGFloat>?, shouldInterpolate: Bool,
    intent: CGColorRenderingIntent
  ) { fatalError() }
  public var alphaInfo: CGImageAlphaInfo { fatalError() }
  public var colorSpace: CGColorSpace? { fatalError() }
  public var width: Int { fatalError() }
  public var height: Int { fatalError() }
}

public final class CGContext {
  public init?(
    data: UnsafeMutableRawPointer?, width: Int, height: Int, bitsPerComponent: Int, bytesPerRow: Int, space: CGColorSpace,
    bitmapInfo: UInt32
  ) { fatalError() }
  public var interpolationQuality: CGInterpolationQuality {
    get { fatalError() }
    set { fatalError() }
  }
  public func draw(_ image: CGImage, in rect: CGRect) { fatalError() }
}
