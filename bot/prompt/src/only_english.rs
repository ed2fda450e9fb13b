//! What a persona says to somebody who writes in another language, where its model speaks only English.
//!
//! Such a model answers with English words that miss the message, or with broken words of that language. Naming the
//! language in the prompt or giving the first words of the reply does not help; `bot/docs/BENCHMARKS.md` says what was
//! tried.

use whatlang::Lang;

use crate::compose::PromptParts;
use crate::form::Form;
use crate::language::foreign_language;
use crate::unsaid::is_material;

/// "Sorry, I speak only English. Please write to me in English." No form depends on anybody's gender.
const SENTENCES: [(Lang, &str); 21] = [
    (Lang::Deu, "Tut mir leid, ich spreche nur Englisch. Schreib mir bitte auf Englisch."),
    (Lang::Fra, "Pardon, je ne parle qu'anglais. Tu peux m'écrire en anglais ?"),
    (Lang::Spa, "Lo siento, solo hablo inglés. ¿Puedes escribirme en inglés?"),
    (Lang::Ita, "Mi dispiace, parlo solo inglese. Puoi scrivermi in inglese?"),
    (Lang::Por, "Desculpa, só falo inglês. Podes escrever-me em inglês?"),
    (Lang::Nld, "Sorry, ik spreek alleen Engels. Kun je me in het Engels schrijven?"),
    (Lang::Swe, "Tyvärr talar jag bara engelska. Kan du skriva till mig på engelska?"),
    (Lang::Pol, "Przepraszam, mówię tylko po angielsku. Napisz do mnie po angielsku."),
    (Lang::Ces, "Promiň, mluvím jen anglicky. Napiš mi prosím anglicky."),
    (Lang::Tur, "Üzgünüm, yalnızca İngilizce konuşabiliyorum. Bana İngilizce yazar mısın?"),
    (Lang::Rus, "Извини, я говорю только по-английски. Напиши мне, пожалуйста, по-английски."),
    (Lang::Ukr, "Вибач, я розмовляю лише англійською. Напиши мені, будь ласка, англійською."),
    (Lang::Ell, "Συγγνώμη, μιλάω μόνο αγγλικά. Γράψε μου, σε παρακαλώ, στα αγγλικά."),
    (Lang::Heb, "סליחה, השפה היחידה שלי היא אנגלית. אפשר לכתוב לי באנגלית?"),
    (Lang::Ara, "عذرًا، لا أتحدث إلا الإنجليزية. هل يمكنك الكتابة إليّ بالإنجليزية؟"),
    (Lang::Hin, "माफ़ कीजिए, मुझे केवल अंग्रेज़ी आती है। कृपया मुझे अंग्रेज़ी में लिखिए।"),
    (Lang::Tha, "ขอโทษนะ พูดได้แค่ภาษาอังกฤษ ช่วยเขียนเป็นภาษาอังกฤษได้ไหม"),
    (Lang::Kor, "미안해요, 저는 영어만 할 수 있어요. 영어로 써 주세요."),
    (Lang::Jpn, "ごめんなさい、英語しか話せません。英語で書いてください。"),
    (Lang::Cmn, "抱歉，我只会说英语。请用英语给我写。"),
    (Lang::Vie, "Xin lỗi, tôi chỉ nói được tiếng Anh. Bạn viết cho tôi bằng tiếng Anh nhé?"),
];

/// Returns the reply to a message in another language. Returns `None` if the persona has said it before in the
/// conversation: the model may still find an answer in what it was told.
pub(crate) fn only_english(form: &Form, parts: &PromptParts<'_>) -> Option<&'static str> {
    if !form.only_english || is_material(&parts.message.text) {
        return None;
    }
    let language = foreign_language(parts.message, parts.history)?;
    let (_, sentence) = SENTENCES.iter().find(|(of, _)| *of == language)?;
    let is_said = parts.history.iter().any(|line| line.speaker.is_none() && line.text.starts_with(sentence));
    (!is_said).then_some(*sentence)
}
