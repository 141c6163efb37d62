// swift-format-ignore-file: AlwaysUseLowerCamelCase
public import Foundation

// Declarations of Core Graphics, and of Core Foundation, which Apple's Foundation exports. The types of Core Foundation
// are replaced by the Swift types to which they bridge.
@_exported public import struct Foundation.CGFloat
@_exported public import struct Foundation.CGPoint
@_exported public import struct Foundation.CGRect
@_exported public import struct Foundation.CGSize

public typealias CFString = String
public typealias CFData = Data
public typealias CFMutableData = NSMutableData
public typealias CFDictionary = [AnyHashable: Any]

public final class CGColorSpace {
  public static var sRGB: CFString { fatalError() }
  public init?(name: CFString) { fatalError() }
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
