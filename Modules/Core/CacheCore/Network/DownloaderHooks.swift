public import HTTPTypes
private import Synchronization

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Hooks that observe downloads, and accept, refuse or replace their responses. Each hook is a box that is empty at first.
///
/// For each request, in this order:
///
/// 1. ``onRequestSent`` is called with the request as it is sent.
/// 2. ``onValidStatusCode`` is called with the head of the response, and accepts or refuses its status.
/// 3. ``onResponseReceived`` is called with the head, and may refuse the response before its body is read.
/// 4. ``onDataReceived`` is called with each chunk before the reader gets it, and may replace or refuse it.
/// 5. ``onBodyReceived`` is called with the whole body before the reader gets any of it, and may replace or refuse it.
/// 6. ``onDownloadingFinished`` is called once for each call of ``onRequestSent``.
///
/// The calls for one request never overlap; those for different requests may. A hook that delays or refuses one request does not
/// affect other requests. A hook that suspends must end when its task is cancelled.
///
/// To change or refuse a request before it is sent, use a ``RequestInterceptor``.
///
/// ```swift
/// let hooks = DownloaderHooks {
///   $0.onResponseReceived = AsyncDelegate { exchange in
///     exchange.response?.headerFields[.contentType]?.hasPrefix("image/") == true ? .proceed : .refuse("not an image")
///   }
///   $0.onDownloadingFinished.delegate(on: watcher) { (watcher, exchange) in watcher.note("\(exchange.request)") }
/// }
/// let watched = engine.hooked(by: hooks)
/// ```
///
/// - Important: A hook with a target does not retain it, and after its release the hook counts as not set. The exceptions are
///   ``onDataReceived`` and ``onBodyReceived``: the bytes can no longer be replaced, so each download that would call them fails
///   with ``CacheError/Code/refused``. Give hooks that judge a response or replace bytes a target that lives as long as the
///   downloader, or a closure without a target. The cache above stores the replaced bytes, and serves them to every request with
///   the same key.
public struct DownloaderHooks: Sendable {
  /// Called before a request is sent. `DownloadExchange.request` includes every field that the engine's settings add.
  public var onRequestSent = Delegate<DownloadExchange, Void>()

  /// Returns whether a response with this status is accepted. If not, the download ends with
  /// ``CacheError/Code/unacceptableStatus`` and the body is not read. Refusing a 304 breaks revalidation.
  public var onValidStatusCode = Delegate<DownloadExchange, Bool>()

  /// Returns whether the download continues with the body of this response.
  public var onResponseReceived = AsyncDelegate<DownloadExchange, DownloadVerdict>()

  /// Receives the next bytes of the body (`DownloadExchange.data`), which are never empty.
  ///
  /// It returns the bytes for the reader: the given ones, or the same number of other bytes. After
  /// ``DownloadVerdict/proceedReplacingBody`` it may return any number of bytes, including none. An error refuses the bytes, ends
  /// the body and stops the transfer.
  public var onDataReceived = AsyncDelegate<DownloadExchange, Data>()

  /// Receives the whole body (`DownloadExchange.data`), and returns the body for the reader. An error refuses it.
  ///
  /// For bodies that cannot be processed chunk by chunk, such as those of a block cipher or an archive. The download returns when
  /// the hook has, so its caller sees no progress meanwhile. The head then has the `Content-Length` of the returned body.
  ///
  /// - The hook gets the bodies of successful responses (2xx), including empty ones. There is none for HEAD, 204, 205 and 304.
  ///   The bodies of other statuses, such as error pages, are passed on without this call.
  /// - A part of a body cannot be processed. `Range` and `If-Range` are therefore removed from the request, and `Accept-Ranges`
  ///   of the response becomes `none`. A server that sends a 206 nevertheless causes ``CacheError/Code/malformedResponse``.
  /// - The head of a response to HEAD, or of a 304, loses its `Content-Length`, because it would be that of the server's body.
  /// - Trailers are dropped. Digests of the server's body (`Content-Digest`, `Repr-Digest`, `Content-MD5`, `Digest`) are removed.
  public var onBodyReceived = AsyncDelegate<DownloadExchange, Data>()

  /// The largest body, in bytes, that is collected for ``onBodyReceived``, at least zero. A larger one ends the download with
  /// ``CacheError/Code/bodyTooLarge``. The default is 64 MiB. With a negative number, requests fail with
  /// ``CacheError/Code/invalidConfiguration`` before they are sent. A manager's memory budget does not include this memory.
  public var bodyLimit: Int64 = 64 << 20

  /// Called once for each call of ``onRequestSent``, when the request has ended, with the head of a complete response or with
  /// `DownloadExchange.error`. A body that is released early counts as cancelled. The call may come from the `deinit` of the
  /// body, on any thread.
  public var onDownloadingFinished = Delegate<DownloadExchange, Void>()

  /// Creates hooks that do nothing.
  public init() {}

  /// Creates hooks and sets some of them.
  public init(_ change: (inout DownloaderHooks) -> Void) { change(&self) }

  /// Whether a download must call or obey a hook. Hooks that replace bytes count even if their target was released, because the
  /// reader must not get the bytes as they are.
  package var isSet: Bool {
    onRequestSent.isSet || onValidStatusCode.isSet || onResponseReceived.isSet || onDataReceived.hasHook
      || onBodyReceived.hasHook || onDownloadingFinished.isSet
  }
}

/// A hook's decision about a response.
public enum DownloadVerdict: Hashable, Sendable {
  /// Accepts the response with the bytes that arrive.
  case proceed
  /// Accepts the response and allows ``DownloaderHooks/onDataReceived`` to change the number of bytes.
  ///
  /// The header loses its `Content-Length`. Its `Accept-Ranges` becomes `none`, because a range of the server's bytes is not a
  /// range of the replaced ones.
  case proceedReplacingBody
  /// Refuses the response. The body is not read, and the download ends with ``CacheError/Code/refused`` and this reason.
  case refuse(String)
}

/// A request and its response, as far as they are known when ``DownloaderHooks`` are called.
public struct DownloadExchange: Sendable, Identifiable {
  /// An identifier that is unique in this process.
  public let id: UInt64
  /// The request that is sent.
  public let request: HTTPRequest
  /// The number of the request for this resource, counted from 1.
  public let attempt: Int
  /// The status and the fields of the response, or `nil` before they have arrived.
  public internal(set) var response: HTTPResponse?
  /// The bytes that a call is about: a chunk, or the whole body. Empty in the other calls.
  public internal(set) var data = Data()
  /// The error with which the request ended, or `nil` if it has not ended or the response is complete.
  public internal(set) var error: CacheError?

  /// Creates an exchange for a test of a hook.
  public init(
    request: HTTPRequest, attempt: Int = 1, response: HTTPResponse? = nil, data: Data = Data(), error: CacheError? = nil
  ) {
    id = Self.serial.wrappingAdd(1, ordering: .relaxed).newValue
    self.request = request
    self.attempt = attempt
    self.response = response
    self.data = data
    self.error = error
  }

  private static let serial = Atomic<UInt64>(0)
}
