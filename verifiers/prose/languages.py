"""The words with which a writer denies, doubts, declines or takes back a statement, by language.

The tables are searched together, because a sentence of five words does not reveal its language. They cover most of the
languages that ``constraints.languages`` detects; ``is_known`` tells whether the words of a text are covered.
"""

from __future__ import annotations

import re

from bestofn.verifiers.constraints.languages import language_of

NEGATIONS = {
    "en": r"not|never|no(?! doubt\b)|none|neither|nor|cannot|without(?! (?:a )?doubt\b)|nobody|nothing|nowhere|n['’]t",
    "es": r"no(?! doubt\b)|nunca|jamás|ningun[oa]?|ningún|tampoco|sin(?! duda\b)(?! ?[\d(x\\θα])",
    "fr": r"pas|jamais|aucune?|sans(?! aucun doute\b| doute\b)|non|ne|n['’]\w+",
    "de": r"nicht|kein\w*|nie|niemals|ohne(?! zweifel\b)|weder|keines(?:falls|wegs)",
    "it": r"non(?!-)|nessun\w*|senza(?! dubbio\b)",
    "pt": r"não|nunca|jamais|nenhum\w*|sem(?! dúvida\b)",
    "nl": r"niet|geen|nooit|zonder",
    "sv": r"inte|aldrig|ingen|inget|utan",
    "da": r"ikke|aldrig|intet|uden",
    "no": r"aldri|uten",
    "pl": r"nie|nigdy|żaden|żadn\w+|bez",
    "cs": r"není|nelze|nikdy|žádn\w+|nemohu|nemůž\w+|nevím",
    "sk": r"nikdy|nemôž\w+|neviem",
    "hr": r"nije|nikad|bez|ne (?:može|mogu|znam)",
    "ro": r"nu|fără|niciodată",
    "hu": r"nem|nincs|soha|nélkül",
    "fi": r"ei|eivät|emme|ilman",
    "et": r"ei|pole|ilma",
    "tr": r"değil\w*|yok|hayır|olamaz|asla|\w+[ae]m[ae](?:m|z|yız|yiz)",
    "ru": r"не|нет|ни|никогда|без|нельзя",
    "uk": r"немає|ніколи",
    "bg": r"няма|никога",
    "el": r"δεν|μην?|όχι|χωρίς|ποτέ",
    "id": r"tidak|bukan|tanpa|belum",
    "vi": r"không|chưa|chẳng",
    "ar": r"لا|ليس\w*|لم|لن|غير|بدون",
    "fa": r"نیست|نه|بدون|نمی\S*",
    "ur": r"نہیں",
    "he": r"לא|אין|אינ\w+|בלי",
    "hi": r"नहीं|बिना",
    "th": r"ไม่",
    "ko": r"아니|아닙|않|못|없",
    "zh": r"不(?!等式|定积分|久|同|断|仅|但)|没|沒|未(?!知数)|无(?!疑|穷|理|限)|無|并非|绝非|莫",
    "ja": r"(?<!少)ない|ません|なし|無理|できず",
}  # fmt: skip
"""Words that deny what their clause says."""
FALSE = {
    "en": r"wrong|false|incorrect|mistaken|untrue|inaccurate|erroneous",
    "es": r"incorrect[oa]s?|fals[oa]s?|erróne[oa]s?|equivocad[oa]s?",
    "fr": r"faux|fausses?|incorrecte?s?|erronée?s?|inexacte?s?",
    "de": r"falsch\w*|unrichtig|inkorrekt|unzutreffend|unwahr",
    "it": r"sbagliat[oaie]|errat[oaie]|scorrett[oaie]|fals[oaie]",
    "pt": r"errad[oa]s?|incorret[oa]s?|fals[oa]s?",
    "nl": r"fout|onjuist|verkeerd",
    "sv": r"fel|felaktigt?",
    "pl": r"błędn\w+|niepoprawn\w+|nieprawidłow\w+",
    "tr": r"yanlış",
    "ru": r"неверн\w*|неправильн\w*|ошибочн\w*|ложн\w*",
    "uk": r"неправильн\w*|хибн\w*",
    "ar": r"خاطئ\w*|خطأ",
    "ko": r"틀렸\w*|틀린|오답",
    "zh": r"错(?!位)|錯|误(?!差)|誤|假的",
    "ja": r"間違|誤り|誤答|不正解",
}
"""Words that call a statement false."""
OTHERS = {
    "en": r"(?:any(?:thing|where|one)?|every(?:thing|where|one)?|all|nothing|any \w+) (?:but|except|other than|save|besides)"
    r"|except|other than|apart from|aside from|excluding|different from|unequal|far from|ruled? out|eliminate[ds]?"
    r"|exclud\w+|instead of|rather than|opposite of",
    "es": r"(?:cualquier|todo|otr)\w*(?: \w+){0,2} (?:menos|excepto|salvo|que)|excepto|salvo|distint[oa]s? (?:de|a)"
    r"|diferentes? (?:de|a)|descart\w+|en lugar de|en vez de",
    "fr": r"tout(?:e|es)?(?: \w+)? sauf|sauf|autre que|excepté|hormis|différente?s? de|exclu\w*|au lieu de|plutôt que",
    "de": r"außer|ausser|alles andere als|ungleich|verschieden von|anders als|auszuschließen|ausgeschlossen|scheidet aus"
    r"|anstatt|statt",
    "it": r"tranne|eccetto|all['’]infuori|divers[oa] da|esclus\w+|invece di",
    "pt": r"(?:qualquer|tudo|todo)\w*(?: \w+){0,2} (?:menos|exceto|salvo)|exceto|diferentes? de|em vez de|exclu\w+",
    "nl": r"behalve|anders dan|ongelijk aan",
    "sv": r"utom|förutom|annat än",
    "pl": r"oprócz|poza|różn\w+ od",
    "tr": r"dışında|hariç|farklı",
    "ru": r"кроме|только не|отлич\w+ от|исключ\w+|вместо",
    "ar": r"باستثناء|ما عدا|سوى",
    "ko": r"제외|이외|말고|빼고",
    "zh": r"除了?[^,。;]{0,12}?(?:以?外|之外|的)|以外|之外|不同于|排除",
    "ja": r"以外|異なる|除(?:く|いた|外)",
}
"""Words that mean every value but the one that they name."""
DOUBTS = {
    "en": r"doubt(?:s|ed|ful)?(?!less)|(?:un|not (?:\w+ )?)sure|uncertain|unlikely|guess(?:es|ed|ing)?"
    r"|(?:might|could|may|would|some|many|people|others|one|they|he|she|who|friends?|students?|teacher|everyone|someone)"
    r" (?:\w+ )?(?:think|thinks|thought|believes?|say|says|said|claims?|claimed|guess|assumes?|suspects?|be tempted)",
    "es": r"dud[oa]\w*|quizás?|tal vez|(?:alguno?s|muchos|amig[oa]s?|alguien|la gente|se podría|podría)(?: \w+){0,2}"
    r" (?:pens\w+|cre\w+|dic\w+|afirm\w+|sostien\w+)",
    "fr": r"doute[szr]?|peut-être|(?:certains|beaucoup|amie?|on|quelqu['’]un|les gens)(?: \w+){0,2}"
    r" (?:croire|penser|pensent|croient|dire|dit|disent|prétend\w*|affirm\w+)",
    "de": r"bezweif\w+|zweif\w+|vielleicht|unsicher|(?:man|manche|viele|jemand|freund\w*|leute)(?: \w+){0,3}"
    r" (?:vermut\w+|denk\w+|glaub\w+|mein\w+|sag\w+|behaupt\w+|annehm\w+)",
    "it": r"dubit\w+|forse|(?:alcuni|molti|amic[oa]|qualcuno|si potrebbe)(?: \w+){0,2} (?:pens\w+|cred\w+|dic\w+|afferm\w+)",
    "pt": r"duvid\w+|talvez|(?:alguns|muitos|amig[oa]|alguém|poder-se-ia)(?: \w+){0,2} (?:pens\w+|ach\w+|diz\w*|afirm\w+)",
    "nl": r"betwijfel\w*|misschien",
    "sv": r"tvivlar|kanske",
    "pl": r"wątpię|może być",
    "tr": r"şüphe\w*|belki",
    "ru": r"сомнева\w+|возможно|(?:некоторые|многие|друг|кто-то|кажется)(?: \w+){0,2} (?:дума\w+|счита\w+|говор\w+|утвержда\w+)",
    "ko": r"의심",
    "zh": r"怀疑|也许|可能是|(?:有人|有些人|某人|许多人|很多人|朋友|同学|学生|他|她|他们)[^,。;]{0,4}(?:认为|觉得|以为|说|声称)",
    "ja": r"疑(?!問)|かもしれ|(?:人|友人|生徒|学生)[^、。]{0,6}(?:言|思|主張)",
}
"""Words that doubt a statement, or that report it from somebody else."""
INABILITY = {
    "en": r"unable|impossible|insufficient|(?:is|are|was|were) (?:\w+ )?(?:missing|unknown|unclear|unreadable|undetermined|indeterminate)"
    r"|missing (?:information|data|figures?|diagram|image|details|from)|lack(?:s|ing)? (?:of |the |enough |any )"
    r"|(?:I|we|you)(?:['’]d|['’]ll| would| will)? need|need(?:ed)? to (?:see|know)|requires? more|please|sorry|apologi\w+"
    r"|(?:could|can|would) you|(?:must|have to) decline|refuse|as an? (?:ai|(?:large )?language model)|I (?:can )?only (?:see|have|know)",
    "es": r"imposible|insuficientes?|falta(?:n datos|n? información)?|necesit(?:o|aría|aríamos|amos)|solo (?:veo|tengo)|lo siento|perdón|disculp\w+|podrías?|puedes|por favor"
    r"|desconoc\w+|indeterminad[oa]",
    "fr": r"impossible|insuffisant\w*|manqu\w+|me faudrait|faut connaître|désolée?|pardon|pourri\w+-vous|pouvez-vous|veuillez"
    r"|s['’]il vous plaît|inconnue?s?|indéterminable|besoin de",
    "de": r"unmöglich|fehl(?:t|en|end\w*)|leider|bitte|zu wenige?|unbekannt\w*|tut mir leid|unbestimm\w+|bräuchte|benötige|sehe nur"
    r"|entschuldig\w+|unzureichend\w*|könntest|könnten sie|brauche",
    "it": r"impossibile|insufficient\w*|manca(?:no)?|mi dispiace|scus\w+|sconosciut\w+|(?:ho|avrei) bisogno|potresti|per favore",
    "pt": r"impossível|insuficientes?|faltam?|preciso (?:de|ver|saber)|desculp\w*|sinto muito|desconhecid\w+|poderia|por favor",
    "nl": r"onmogelijk|onvoldoende|ontbre\w+|sorry|helaas|alstublieft",
    "sv": r"omöjligt|saknas|tyvärr|otillräcklig\w*",
    "pl": r"niemożliw\w+|brak(?:uje)?|przepraszam|niestety|proszę",
    "tr": r"imkânsız|imkansız|yetersiz|eksik|lütfen|üzgünüm",
    "ru": r"невозможно|недостаточно|извини\w*|простите|к сожалению|мне нужн\w+|пожалуйста|неизвестн\w+|отсутству\w+",
    "ar": r"آسف|مستحيل|عذر\w*|غير كاف\w*|يرجى",
    "ko": r"죄송|불가능|부족|모르|알 수",
    "zh": r"抱歉|对不起|對不起|(?:请|請)(?:您|你)?(?:先)?(?:提供|给|問|问|上传|补充|分享|告诉|发)|缺[少乏失]|不足|不能|难以|遗憾|只看到",
    "ja": r"申し訳|すみません|不足|不明|不可能|わかりません|必要",
}
"""Words with which a writer says that there is no answer, or asks for what is missing."""
WITHDRAWALS = {
    "en": r"(?:I|we)(?:['’]ve| have)? (?:\w+ )?(?:made|committed) (?:an?|the|some|another)\b[^.\n]{0,30}?(?:mistake|error|slip|typo)"
    r"|(?:I|we) (?:was|were|am|stand) (?:\w+ )?(?:wrong|mistaken|corrected|incorrect|off)|my (?:mistake|bad|error)"
    r"|(?:I|we) (?:have )?(?:\w+ )?(?:mis(?:read|counted|calculated|took|understood|spoke|copied|applied)"
    r"|(?:forgot|dropped|lost|overlooked|confused|swapped) (?:an?|the|to|one)\b)"
    r"|scratch that|strike that|(?:take|took) (?:that|it|this) back|corrections?(?=\s*[:,.]|\s+(?:to|of|it))|on second thoughts?"
    r"|(?:disregard|ignore) (?:the|my|that|this|what)|w?oops|(?:no,? )?wait(?=[,.!:—–-]|\s+(?:I|a|no|that|it)\b)|hold on|erratum"
    r"|(?:I )?apologi[sz]e(?!\s+for (?:the|any) (?:inconvenience|confusion))|sorry,? (?:I|it|that|the|my)\b"
    r"|(?:should|must) (?:have been|actually be|read|instead)|(?:that|this|it|the above|which)(?:['’]s| is| was) (?:\w+ )?"
    r"(?:not (?:quite )?(?:right|correct)|wrong|incorrect|a mistake|an error)(?! (?:to|if|when)\b)|edit(?:ed)?:"
    r"|let me (?:redo|correct|rectify|revise|fix)|actually,? (?:no|I|it(?:['’]s| is)|that(?:['’]s| is)|the (?:answer|correct|right|sum)"
    r"|re-?\w+ing)"
    r"|(?<=[,;.…—–-] )no, (?:it|the|that|wait|sorry|actually|[-\\$(]?\w{1,6}[.)]?\s*$)|rechecking (?:shows|gives)|I meant",
    "es": r"me (?:he )?equivo\w+|correcci[óo]n|rectific\w+|comet[íi] un error|hay un error|perdón|no, espera|espera,"
    r"|(?:eso|esto) (?:no es correcto|es incorrecto|está mal)|mejor dicho|me retracto|olvid[ae]\w* lo anterior|error mío",
    "fr": r"je me (?:suis tromp\w+|trompe|corrige|rétracte)|correction|erreur de ma part|j['’]ai (?:fait|commis) une erreur"
    r"|(?:ce résultat|cela|c['’]est|ceci)(?: est)? (?:faux|incorrect|erroné)|pardon|attend(?:ez|s)|il faut lire|rectification"
    r"|en fait,? non|non, c['’]est|oubliez",
    "de": r"ich habe (?:einen|mich|da|den|hier)\b[^.\n]{0,25}?(?:fehler|geirrt|verrechnet|vertan|verlesen|verzählt)|korrektur|berichtigung"
    r"|(?:das|dies|es) (?:stimmt|ist) (?:aber |so |doch )?(?:nicht|falsch)|halt,|moment,|nein,|richtig ist|mein fehler|ich korrigiere"
    r"|nehme (?:das|es|ich) zurück|vergiss|doch nicht",
    "it": r"mi (?:sono|ero) sbagliat\w+|ho (?:commesso|fatto) un errore|correzione|anzi,? no|aspetta|rettific\w+|errore mio|pardon|scus\w+"
    r"|(?:questo|ciò) (?:non è corretto|è sbagliato)",
    "pt": r"enganei-me|me enganei|cometi um erro|correç[ãa]o|corrigindo|desculp\w+|espera[,!]|não, espera|retifico|erro meu"
    r"|(?:isso|isto) (?:não está cert\w+|está errad\w+)",
    "nl": r"ik (?:heb|had) (?:me|een)\b[^.\n]{0,20}?(?:vergist|fout)|correctie|wacht,",
    "sv": r"jag (?:har|hade|gjorde)\b[^.\n]{0,20}?fel|rättelse|vänta,",
    "pl": r"pomyli\w+|popełni\w+ błąd|korekta|poprawka|chwila,|przepraszam",
    "tr": r"hata yaptım|yanıldım|düzeltme|özür|bekle,",
    "ru": r"я ошиб\w+|исправлени\w+|исправляю|поправка|прошу прощения|извини\w*|стоп|подожди\w*|нет,|это неверно|моя ошибка",
    "uk": r"я помили\w+|виправлення",
    "ar": r"أخطأت|تصحيح|عذر\w*|انتظر",
    "ko": r"실수|정정|잠깐|잘못",
    "zh": r"(?:算|写|看|弄|搞|答)错|我错了|更正|改正|修正|等等|等一下|不对|有误|抱歉|对不起|纠正|应该是|应为|是错的|失误",
    "ja": r"間違え|訂正|すみません|申し訳|待って|誤りで|失礼|修正",
}
"""Words with which a writer takes back what was said before."""
_ALIKE = frozenset({"ca", "mr", "mk", "sl"})
"""Languages that use the negations of a related language."""
_WITHOUT_SPACES = frozenset({"zh", "ja", "ko", "th"})


def _one(table: dict[str, str], but: str = "") -> str:
    """Return one pattern for the words of all languages of ``table``, without those of the language ``but``."""
    table = {language: words for language, words in table.items() if language != but}
    spaced = "|".join(words for language, words in table.items() if language not in _WITHOUT_SPACES)
    others = "|".join(words for language, words in table.items() if language in _WITHOUT_SPACES)
    return rf"(?:(?<![\w\\])|(?=n['’]t))(?:{spaced})(?!\w)" + (f"|(?:{others})" if others else "")


FOREIGN_NEGATION = _one(NEGATIONS, but="en")
FOREIGN_FALSEHOOD = _one(FALSE, but="en")
ANY_NEGATION = _one(NEGATIONS)
WITHDRAWAL = re.compile(_one(WITHDRAWALS), re.IGNORECASE)
NEGATIVE = re.compile("|".join(map(_one, (NEGATIONS, FALSE, OTHERS, DOUBTS, INABILITY))), re.IGNORECASE)
"""Any word of denial, falsehood, exception, doubt or inability."""


def is_known(text: str) -> bool:
    """Return whether the language of ``text`` is in the tables. A text whose language cannot be detected counts."""
    language = language_of(text)
    return not language or language in NEGATIONS or language in _ALIKE
