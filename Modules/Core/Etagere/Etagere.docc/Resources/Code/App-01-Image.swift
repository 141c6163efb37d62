import CacheUI
import SwiftUI

struct ProductImage: View {
  let url: URL

  var body: some View {
    CachedImage(url)
  }
}
