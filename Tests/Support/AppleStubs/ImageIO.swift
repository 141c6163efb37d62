// swift-format-ignore-file: AlwaysUseLowerCamelCase

// Declarations of Image I/O.
//
// Source: Apple's documentation of CGImageSource, CGImageDestination and CGImageProperties (iOS 18 SDK). The results that a
// function copies or creates are managed by Swift, as the headers annotate them.
public import CoreGraphics

public final class CGImageSource {}
public final class CGImageDestination {}

public enum CGImageSourceStatus: Int32, Sendable {
  case statusUnexpectedEOF = -5
  case statusInvalidData, statusUnknownType, statusReadingHeader, statusIncomplete, statusComplete
}

public func CGImageSourceCreateWithData(_ data: CFData, _ options: CFDictionary?) -> CGImageSource? { fatalError() }
public func CGImageSourceGetType(_ source: CGImageSource) -> CFString? { fatalError() }
public func CGImageSourceGetCount(_ source: CGImageSource) -> Int { fatalError() }
public func CGImageSourceGetStatus(_ source: CGImageSource) -> CGImageSourceStatus { fatalError() }
public func CGImageSourceGetStatusAtIndex(_ source: CGImageSource, _ index: Int) -> CGImageSourceStatus { fatalError() }
public func CGImageSourceCopyProperties(_ source: CGImageSource, _ options: CFDictionary?) -> CFDictionary? { fatalError() }
public func CGImageSourceCopyPropertiesAtIndex(
  _ source: CGImageSource, _ index: Int, _ options: CFDictionary?
) -> CFDictionary? { fatalError() }
public func CGImageSourceCreateThumbnailAtIndex(
  _ source: CGImageSource, _ index: Int, _ options: CFDictionary?
) -> CGImage? { fatalError() }
public func CGImageDestinationCopyTypeIdentifiers() -> CFArray { fatalError() }
public func CGImageDestinationCreateWithData(
  _ data: CFMutableData, _ type: CFString, _ count: Int, _ options: CFDictionary?
) -> CGImageDestination? { fatalError() }
public func CGImageDestinationAddImage(_ destination: CGImageDestination, _ image: CGImage, _ properties: CFDictionary?) {
  fatalError()
}
public func CGImageDestinationFinalize(_ destination: CGImageDestination) -> Bool { fatalError() }

public var kCGImageDestinationLossyCompressionQuality: CFString { fatalError() }
public var kCGImagePropertyAPNGLoopCount: CFString { fatalError() }
public var kCGImagePropertyAPNGUnclampedDelayTime: CFString { fatalError() }
public var kCGImagePropertyColorModel: CFString { fatalError() }
public var kCGImagePropertyDepth: CFString { fatalError() }
public var kCGImagePropertyGIFDictionary: CFString { fatalError() }
public var kCGImagePropertyGIFLoopCount: CFString { fatalError() }
public var kCGImagePropertyGIFUnclampedDelayTime: CFString { fatalError() }
public var kCGImagePropertyHasAlpha: CFString { fatalError() }
public var kCGImagePropertyJFIFDictionary: CFString { fatalError() }
public var kCGImagePropertyJFIFIsProgressive: CFString { fatalError() }
public var kCGImagePropertyOrientation: CFString { fatalError() }
public enum CGImagePropertyOrientation: UInt32, Sendable { case up = 1 }
public var kCGImagePropertyPixelHeight: CFString { fatalError() }
public var kCGImagePropertyPixelWidth: CFString { fatalError() }
public var kCGImagePropertyPNGDictionary: CFString { fatalError() }
public var kCGImagePropertyPNGInterlaceType: CFString { fatalError() }
public var kCGImagePropertyProfileName: CFString { fatalError() }
public var kCGImagePropertyWebPDictionary: CFString { fatalError() }
public var kCGImagePropertyWebPLoopCount: CFString { fatalError() }
public var kCGImagePropertyWebPUnclampedDelayTime: CFString { fatalError() }
public var kCGImageSourceCreateThumbnailFromImageAlways: CFString { fatalError() }
public var kCGImageSourceCreateThumbnailWithTransform: CFString { fatalError() }
public var kCGImageSourceShouldCache: CFString { fatalError() }
public var kCGImageSourceShouldCacheImmediately: CFString { fatalError() }
public var kCGImageSourceThumbnailMaxPixelSize: CFString { fatalError() }
